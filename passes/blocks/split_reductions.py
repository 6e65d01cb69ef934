"""`sdy-split-reductions`: what is reduced along a split dimension becomes partial results and a second stage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.dialect.walk import operations_of
from sdy.passes.common.tensors import is_static_tensor, shape
from sdy.passes.partitioning.emitter import Emitter
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo import AddOp, DotGeneralOp, DotOp, ReduceOp
from sdy.stablehlo.attributes.operation_attributes import DotDimensionNumbers, DotDimensionNumbersAttr, i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import CommutativeElementwiseOp
from sdy.stablehlo.reduction import reducer_body

Axes = tuple[AxisRef, ...]


@dataclass(frozen=True)
class SplitReductionsPass(ModulePass):
    """Reduce in two stages along dimensions that are split: each part by itself, and then the partial results.

    A contraction is a product and then a sum, and a sum may be regrouped, as may every reduction whose body is one
    associative and commutative operation. Before, with the contracted dimension split in 4 by the axis "x"::

        %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>

    After::

        %0 = stablehlo.reshape %a : (tensor<8x64xf32>) -> tensor<8x4x16xf32>
        %1 = stablehlo.reshape %b : (tensor<64x16xf32>) -> tensor<4x16x16xf32>
        %2 = stablehlo.dot_general %0, %1, batching_dims = [1] x [0], contracting_dims = [2] x [1]
        %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0]

    The new dimension, one entry for each part, is split by "x". With `parts`, dimensions are split whatever their
    shardings, into as many parts up to that number as divide them. An operation whose dimensions are whole, or do not
    divide, stays as it is.
    """

    name = "sdy-split-reductions"
    parts: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reduction in operations_of(op, DotOp, DotGeneralOp, ReduceOp):
            if all(map(is_static_tensor, (*reduction.operand_types, *reduction.result_types))):
                _SPLIT[type(reduction)](reduction, self.parts)


@dataclass(frozen=True)
class _Cut:
    """A dimension of an operand that is cut into `count` parts by `axes`, none where no sharding does it."""

    dim: int
    count: int
    axes: Axes = ()

    def apply(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """The value with a dimension of the parts before the one of what is in each."""
        sizes = list(shape(value.type))
        sizes[self.dim : self.dim + 1] = [self.count, sizes[self.dim] // self.count]
        result = emit.reshape(value, sizes)
        sharding = get_sharding(value)
        if sharding is not None and self.axes:
            dims = list(sharding.dims)
            dims[self.dim : self.dim + 1] = [DimSharding(self.axes), DimSharding()]
            set_sharding(result, replace(sharding, dims=tuple(dims)))
        return result

    def moved(self, dim: int) -> int:
        """Where a dimension is after the cut; of the one that is cut, what is in each part."""
        return dim + (dim >= self.dim)


def _cut(op: Operation, operand: SSAValue, dims: Sequence[int], parts: int) -> _Cut | None:
    """The one of `dims` to cut: the largest one into `parts`, or else one that is split. None where all are whole."""
    sizes = shape(operand.type)
    cuts = [_Cut(dim, *_parts(op, operand, dim, parts)) for dim in sorted(dims, key=lambda dim: -sizes[dim])]
    return next((cut for cut in cuts if cut.count > 1), None)


def _parts(op: Operation, operand: SSAValue, dim: int, parts: int) -> tuple[int, Axes]:
    size = shape(operand.type)[dim]
    if parts:
        return max((count for count in range(1, min(parts, size) + 1) if size % count == 0), default=1), ()
    sharding = get_sharding(operand)
    if sharding is None or not size:
        return 1, ()
    split = sharding.dims[dim]
    count = split.sharded_size(mesh_of(sharding, op))
    return (count, split.axes) if size % count == 0 else (1, ())


def _split_dot(op: DotOp, parts: int) -> None:
    last = len(shape(op.lhs.type)) - 1
    _split_contraction(
        op, DotDimensionNumbers(lhs_contracting_dimensions=(last,), rhs_contracting_dimensions=(0,)), parts
    )


def _split_dot_general(op: DotGeneralOp, parts: int) -> None:
    _split_contraction(op, op.dot_dimension_numbers.data, parts)


def _split_contraction(op: DotOp | DotGeneralOp, dims: DotDimensionNumbers, parts: int) -> None:
    """The parts are a batching dimension, whose results are summed up."""
    pairs = dict(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    of_lhs = _cut(op, op.lhs, list(pairs), parts)
    if of_lhs is None:
        return
    of_rhs = replace(of_lhs, dim=pairs[of_lhs.dim])
    emit = Emitter(InsertPoint.before(op), op)
    lhs, rhs = of_lhs.apply(op.lhs, emit), of_rhs.apply(op.rhs, emit)
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
    zero = emit.filled(TensorType(type_.element_type, ()), 0)
    _finish(op, partial, emit, place, of_lhs, zero, AddOp)


def _split_reduce(op: ReduceOp, parts: int) -> None:
    """The first stage reduces each part by itself. Both start from the initial value, which is neutral."""
    applied = op.applied()
    if applied is None or len(op.inputs) != 1:
        return
    reduced = op.dimensions.get_values()
    cut = _cut(op, op.inputs[0], reduced, parts)
    if cut is None:
        return
    emit = Emitter(InsertPoint.before(op), op)
    input_ = cut.apply(op.inputs[0], emit)
    place = sum(1 for dim in range(cut.dim) if dim not in reduced)
    type_ = tensor_type(op.results[0])
    sizes = list(type_.get_shape())
    sizes.insert(place, cut.count)
    partial = ReduceOp.create(
        operands=[input_, op.init_values[0]],
        result_types=[TensorType(type_.element_type, sizes)],
        properties={"dimensions": i64_array(*map(cut.moved, reduced))},
        regions=[reducer_body(type(applied), input_)],
    )
    _finish(op, partial, emit, place, cut, op.init_values[0], type(applied))


def _finish(
    op: Operation,
    partial: DotGeneralOp | ReduceOp,
    emit: Emitter,
    place: int,
    cut: _Cut,
    init: SSAValue,
    reducer: type[CommutativeElementwiseOp],
) -> None:
    """Replace `op` by the reduction of what `partial` gives along its dimension `place`, that of the parts."""
    parts = emit.insert(partial)
    sharding = get_sharding(op.results[0])
    total = ReduceOp.create(
        operands=[parts, init],
        result_types=op.result_types,
        properties={"dimensions": i64_array(place)},
        attributes=op.attributes,
        regions=[reducer_body(reducer, parts)],
    )
    emit.insert(total)
    if sharding is not None and cut.axes:
        set_sharding(parts, _with_parts(sharding, place, cut.axes))
    Rewriter.replace_op(op, [], total.results)
    if cut.axes:
        _SPLIT[type(partial)](partial, 0)


def _with_parts(sharding: TensorSharding, place: int, axes: Axes) -> TensorSharding:
    dims = list(sharding.dims)
    dims.insert(place, DimSharding(axes))
    return replace(sharding, dims=tuple(dims))


_SPLIT: dict[type[Operation], Callable[[Any, int], None]] = {
    DotOp: _split_dot,
    DotGeneralOp: _split_dot_general,
    ReduceOp: _split_reduce,
}
