"""`sdy-rewrite-as-slices-and-pads`: canonicalization to slices without strides and pads without interior padding."""

from collections.abc import Callable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.editing import AnalysisPreservingPass, replace
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.ir.walking import invalidate, operations_of
from sdy.passes.common.known_scalars import static_slice
from sdy.passes.common.properties import uniform_number
from sdy.passes.spmd.resizes import are_equal, filling_scalar, is_filled, may_resize
from sdy.sharding import equivalent
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import MulOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp


class RewriteAsSlicesAndPadsPass(AnalysisPreservingPass):
    """Canonicalize operations on sharded dimensions to slices and pads, for which devices exchange few rows.

    They are: a `gather` of one window of several rows or columns, which is a `dynamic_slice`; a `dynamic_slice` at
    constants, or at integers computed from constants; a `concatenate` of a tensor with rows filled with one scalar
    before it, after it or both; a strided slice of one row; and interior padding of a tensor with one row.
    Before::

        sdy.mesh @mesh = <["x"=4]>
        %c = stablehlo.constant dense<2> : tensor<i32>
        %1 = stablehlo.dynamic_slice %0, %c, sizes = [8] [{"x"}] : (tensor<12xf32>, tensor<i32>) -> tensor<8xf32>
        %2 = stablehlo.concatenate %zeros, %1, dim = 0 [{"x"}] : (tensor<4xf32>, tensor<8xf32>) -> tensor<12xf32>

    After, where %zero is the operand of a broadcast or a constant::

        %1 = stablehlo.slice %0 [2:10] [{"x"}] : (tensor<12xf32>) -> tensor<8xf32>
        %2 = stablehlo.pad %1, %zero, low = [4], high = [0], interior = [0] [{"x"}] : tensor<12xf32>

    A slice or pad that is the identity, and a product with ones, as gradients of sums begin with, are replaced by their
    operand, with a reshard if the shardings differ.

    Operations with a custom sharding rule, unreduced axes or dynamic sizes are unchanged, as are concatenations with
    different scalars at both ends.
    """

    name = "sdy-rewrite-as-slices-and-pads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in operations_of(op, SliceOp, PadOp):
            if _is_identity(inner):
                replace(inner, [_resharded(inner.operand, inner)])
        for inner in operations_of(op, MulOp):
            if (kept := _times_one(inner)) is not None:
                replace(inner, [_resharded(kept, inner)])
        for inner in operations_of(op, GatherOp):
            if _is_window(inner):
                _rewrite(inner, _dynamic_slice(inner))
        for inner in operations_of(op, *_REWRITES):
            if may_resize(inner) and (value := _REWRITES[type(inner)](inner)) is not None:
                _rewrite(inner, value)


def _rewrite(op: Operation, value: SSAValue) -> None:
    """Replace `op` by `value`, whose operation gets its attributes."""
    assert isinstance(value.owner, Operation)
    value.owner.attributes.update(op.attributes)
    replace(op, [value])


def _is_identity(op: SliceOp | PadOp) -> bool:
    """Return whether `op` is the identity: equal types, and no edge padding, so that a pad by -1 and 1 is excluded."""
    edges = () if isinstance(op, SliceOp) else (op.edge_padding_low, op.edge_padding_high)
    return (
        SHARDING_RULE not in op.attributes
        and is_static_tensor(op.operand.type)
        and op.operand.type == op.result.type
        and not any(number for column in edges for number in column.get_values())
        and not any(sharding.unreduced for sharding in map(get_sharding, (op.operand, op.result)) if sharding)
    )


def _times_one(op: MulOp) -> SSAValue | None:
    """Return the operand that a product with ones equals; None for other products, and those with partial sums."""
    factors = [value for value in op.operands if uniform_number(value) != 1]
    shardings = map(get_sharding, (*op.operands, op.result))
    if len(factors) != 1 or SHARDING_RULE in op.attributes or any(each.unreduced for each in shardings if each):
        return None
    return factors[0]


def _resharded(value: SSAValue, op: SliceOp | PadOp | MulOp) -> SSAValue:
    """Return `value`, resharded like the result of `op` if necessary."""
    sharding = get_sharding(op.result)
    if sharding is None or equivalent(get_sharding(value), sharding):
        return value
    return before(op).insert(ReshardOp(value, sharding))


def _is_window(op: GatherOp) -> bool:
    """Return whether `op` reads one window, of several rows or columns but not all, and drops no dimension of it."""
    shardings, sizes = map(get_sharding, (op.operand, op.result)), op.slice_sizes.get_values()
    return (
        SHARDING_RULE not in op.attributes
        and all(is_static_tensor(value.type) for value in (*op.operands, op.result))
        and sizes == shape_of(op.result)
        and any(1 < sizes[dim] < shape_of(op.operand)[dim] for dim in op.dimension_numbers.data.start_index_map)
        and not any(sharding.unreduced for sharding in shardings if sharding is not None)
    )


def _dynamic_slice(op: GatherOp) -> SSAValue:
    """Read the window of `op`; both operations clamp it to the operand."""
    emit, indices = before(op), op.start_indices
    indexed = op.dimension_numbers.data.start_index_map
    entries = indices.owner.operands if isinstance(indices.owner, ConcatenateOp) else [indices]
    if len(entries) != len(indexed):
        vector = emit.reshape(indices, [len(indexed)])
        entries = [emit.slice(vector, [entry], [entry + 1]) for entry in range(len(indexed))]
    zero = emit.filled(TensorType(tensor_type(indices).element_type, ()), 0)
    starts = [zero] * len(shape_of(op.result))
    for dim, entry in zip(indexed, entries, strict=True):
        starts[dim] = filling_scalar(entry, emit) if is_filled(entry) else emit.reshape(entry, [])
    return emit.dynamic_slice(op.operand, starts, shape_of(op.result))


def _pad(op: ConcatenateOp) -> SSAValue | None:
    tensors = [index for index, operand in enumerate(op.operands) if not is_filled(operand)]
    if len(tensors) != 1 or len(op.operands) == 1:
        return None
    [place], dim, emit = tensors, op.dimension.value.data, before(op)
    filled = [operand for index, operand in enumerate(op.operands) if index != place]
    scalars = [filling_scalar(operand, emit) for operand in filled]
    if not all(are_equal(scalars[0], scalar) for scalar in scalars):
        invalidate(op)  # `filling_scalar` has inserted constants, which dead-code elimination removes
        return None
    low, high = ([0] * len(shape_of(op.result)) for _ in range(2))
    low[dim], high[dim] = (sum(shape_of(operand)[dim] for operand in side) for side in (filled[:place], filled[place:]))
    return emit.insert(PadOp(op.operands[place], scalars[0], low, high))


def _slice_without_strides(op: SliceOp) -> SSAValue | None:
    sizes = shape_of(op.result)
    ranges = [
        (start, start + 1, 1) if size == 1 else (start, limit, stride)
        for (start, limit, stride), size in zip(op.ranges(), sizes, strict=True)
    ]
    return None if ranges == op.ranges() else before(op).slice(op.operand, *zip(*ranges, strict=True))


def _pad_without_holes(op: PadOp) -> SSAValue | None:
    sizes, interior = shape_of(op.operand), op.interior_padding.get_values()
    between = [holes if size > 1 else 0 for size, holes in zip(sizes, interior, strict=True)]
    if between == list(interior):
        return None
    low, high = op.edge_padding_low.get_values(), op.edge_padding_high.get_values()
    return before(op).insert(PadOp(op.operand, op.padding_value, low, high, between))


_REWRITES: dict[type[Operation], Callable[[Any], SSAValue | None]] = {
    DynamicSliceOp: static_slice,
    ConcatenateOp: _pad,
    SliceOp: _slice_without_strides,
    PadOp: _pad_without_holes,
}
