"""`sdy-split-reductions`: reductions along split dimensions become partial results and a second stage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import Axes
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.shapes import is_static_tensor, shape
from sdy.ir.walking import operations_of
from sdy.passes.spmd.shards.elements import neutral_starts
from sdy.passes.spmd.stages import Cut, dims_to_cut, reduce_in_stages, with_parts
from sdy.stablehlo import AddOp, DotGeneralOp, DotOp, ReduceOp
from sdy.stablehlo.attributes.operation_attributes import DotDimensionNumbers, DotDimensionNumbersAttr, i64_array
from sdy.stablehlo.checks.reducers import scalar
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.reduction import reducer_body


@dataclass(frozen=True)
class SplitReductionsPass(ModulePass):
    """Reduce in two stages along split dimensions: within each shard, and then over the partial results.

    A contraction is a product and a sum, and a sum may be regrouped, as may every reduction with a known neutral
    element. Before, with the contracting dimension split in 4 by the axis "x"::

        %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>

    After::

        %0 = stablehlo.reshape %a : (tensor<8x64xf32>) -> tensor<8x4x16xf32>
        %1 = stablehlo.reshape %b : (tensor<64x16xf32>) -> tensor<4x16x16xf32>
        %2 = stablehlo.dot_general %0, %1, batching_dims = [1] x [0], contracting_dims = [2] x [1]
        %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0]

    The new dimension, with one entry per shard, is split by "x". With `parts`, dimensions are split regardless of their
    shardings, into `parts` parts; neutral elements fill the last one of an uneven dimension. Operations without a split
    dimension, or with one that its shards do not divide, are not changed.
    """

    name = "sdy-split-reductions"
    parts: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reduction in operations_of(op, DotOp, DotGeneralOp, ReduceOp):
            split_reduction(reduction, self.parts)


def split_reduction(op: DotOp | DotGeneralOp | ReduceOp, parts: int) -> None:
    """Reduce in two stages along the longest reduced dimension, of `parts` parts, or along the sharded ones if 0."""
    if all(map(is_static_tensor, (*op.operand_types, *op.result_types))):
        _SPLIT[type(op)](op, parts)


def _cut(op: Operation, operand: SSAValue, dims: Sequence[int], parts: int) -> Cut | None:
    """Return how to split the largest of `dims` that `parts` or its sharding splits; None without one."""
    sizes = shape(operand.type)
    cuts = [Cut(dim, *_parts(op, operand, dim, parts)) for dim in sorted(dims, key=lambda dim: -sizes[dim])]
    return next((cut for cut in cuts if cut.count > 1), None)


def _parts(op: Operation, operand: SSAValue, dim: int, parts: int) -> tuple[int, Axes]:
    size = shape(operand.type)[dim]
    if parts:
        return -(-size // -(-size // parts)) if size else 1, ()
    sharding = get_sharding(operand)
    # The sharding of a maximal mesh has no dimensions.
    if sharding is None or not sharding.dims or not size:
        return 1, ()
    split = sharding.dims[dim]
    count = split.sharded_size(mesh_of(sharding, op))
    return (count, split.axes) if size % count == 0 else (1, ())


def dot_numbers(op: DotOp | DotGeneralOp) -> DotDimensionNumbers:
    """Return the dimension numbers of a product."""
    if isinstance(op, DotGeneralOp):
        return op.dot_dimension_numbers.data
    last = len(shape(op.lhs.type)) - 1
    return DotDimensionNumbers(lhs_contracting_dimensions=(last,), rhs_contracting_dimensions=(0,))


def _split_contraction(op: DotOp | DotGeneralOp, parts: int) -> None:
    """Turn the parts into a batching dimension, and sum over it."""
    dims = dot_numbers(op)
    pairs = dict(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    of_lhs = _cut(op, op.lhs, list(pairs), parts)
    if of_lhs is None:
        return
    of_rhs = replace(of_lhs, dim=pairs[of_lhs.dim])
    emit = Emitter(InsertPoint.before(op), op)
    lhs, rhs = _with_zeros(of_lhs, op.lhs, emit), _with_zeros(of_rhs, op.rhs, emit)
    numbers = DotDimensionNumbers(
        (*map(of_lhs.moved, dims.lhs_batching_dimensions), of_lhs.dim),
        (*map(of_rhs.moved, dims.rhs_batching_dimensions), of_rhs.dim),
        tuple(map(of_lhs.moved, dims.lhs_contracting_dimensions)),
        tuple(map(of_rhs.moved, dims.rhs_contracting_dimensions)),
    )
    place = len(dims.lhs_batching_dimensions)
    type_ = tensor_type(op.result)
    sizes = list(type_.get_shape())
    sizes.insert(place, of_lhs.count)
    partial = DotGeneralOp.create(
        operands=[lhs, rhs],
        result_types=[TensorType(type_.element_type, sizes)],
        properties={**op.properties, "dot_dimension_numbers": DotDimensionNumbersAttr(numbers)},
    )
    sums = emit.insert(partial)
    sharding = get_sharding(op.result)
    total = ReduceOp.create(
        operands=[sums, emit.filled(scalar(type_.element_type), 0)],
        result_types=op.result_types,
        properties={"dimensions": i64_array(place)},
        attributes=op.attributes,
        regions=[reducer_body(AddOp, sums)],
    )
    emit.insert(total)
    if sharding is not None and of_lhs.axes:
        set_sharding(sums, with_parts(sharding, place, of_lhs.axes))
    Rewriter.replace_op(op, [], total.results)
    if of_lhs.axes:
        _split_contraction(partial, 0)


def _with_zeros(cut: Cut, value: SSAValue, emit: Emitter) -> SSAValue:
    """Split a dimension of `value`; zeros fill an uneven last part."""
    is_uneven = shape(value.type)[cut.dim] % cut.count
    return cut.apply(value, emit, emit.filled(scalar(tensor_type(value).element_type), 0) if is_uneven else None)


def _split_reduce(op: ReduceOp, parts: int) -> None:
    cut = _cut(op, op.inputs[0], dims_to_cut(op), parts)
    starts = neutral_starts(op) if cut is not None else None
    if cut is None or starts is None:
        return
    partial, _ = reduce_in_stages(op, cut, starts)
    if cut.axes:
        _split_reduce(partial, 0)


_SPLIT: dict[type[Operation], Callable[[Any, int], None]] = {
    DotOp: _split_contraction,
    DotGeneralOp: _split_contraction,
    ReduceOp: _split_reduce,
}
