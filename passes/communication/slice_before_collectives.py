"""`sdy-slice-before-collectives`: collectives of the elements that are used."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import AnalysisPreservingPass, change_type, erase, replace
from sdy.ir.shapes import has_elements, is_static_tensor, shape_of
from sdy.ir.walking import operations_of
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp
from sdy.stablehlo.emitter import Emitter, before, with_shape
from sdy.stablehlo.slicing import SliceOp

Range = tuple[int, int, int]
"""Start, limit and stride."""

_REARRANGED: Mapping[type[Operation], Callable[[Any], Collection[int]]] = {
    AllGatherOp: lambda op: (op.all_gather_dim.value.data,),
    AllToAllOp: lambda op: (op.split_dimension.value.data, op.concat_dimension.value.data),
    CollectiveBroadcastOp: lambda _: (),
    CollectivePermuteOp: lambda _: (),
}
"""The dimensions that collectives split or concatenate."""


class SliceBeforeCollectivesPass(AnalysisPreservingPass):
    """Slice the operand of a collective instead of its result, in the dimensions that it does not rearrange.

    Before::

        %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
        %1 = stablehlo.slice %0 [0:7, 0:3] : (tensor<8x8xf32>) -> tensor<7x3xf32>

    After::

        %0 = stablehlo.slice %arg0 [0:2, 0:3] : (tensor<2x8xf32>) -> tensor<2x3xf32>
        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x3xf32>) -> tensor<8x3xf32>
        %2 = stablehlo.slice %1 [0:7, 0:3] : (tensor<8x3xf32>) -> tensor<7x3xf32>

    The slice has to be the only use of the result; one of an uneven dimension, which removes padding, may be between.
    Reductions are unchanged, as the order in which they add elements may depend on the size of the operand.
    """

    name = "sdy-slice-before-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for collective in reversed(operations_of(op, *_REARRANGED)):
            part = _only_slice(collective.results[0])
            if part is not None and len(collective.operands) == 1:
                _slice_before(collective, _composed(part))


def _only_slice(value: SSAValue) -> SliceOp | None:
    """Return the only user of `value`, of static shape, if it is a slice with elements."""
    user = value.get_user_of_unique_use()
    if not isinstance(user, SliceOp):
        return None
    return user if has_elements(user.result.type) and is_static_tensor(value.type) else None


def _composed(part: SliceOp) -> SliceOp:
    """Compose a slice with the slices of its result."""
    while (user := _only_slice(part.result)) is not None:
        ranges = [
            (start + first * stride, start + (end - 1) * stride + 1, stride * step)
            for (start, _, stride), (first, end, step) in zip(part.ranges(), user.ranges(), strict=True)
        ]
        composed = before(user).slice(part.operand, *zip(*ranges, strict=True))
        replace(user, [composed])
        erase(part)
        assert isinstance(composed.owner, SliceOp)
        part = composed.owner
    return part


def _slice_before(collective: Operation, part: SliceOp) -> None:
    """Slice the operand in the dimensions that the collective keeps, and its result in the others."""
    operand, result = collective.operands[0], collective.results[0]
    rearranged = _REARRANGED[type(collective)](collective)
    before_it, behind_it = part.ranges(), part.ranges()
    for dim, size in enumerate(shape_of(operand)):
        if dim in rearranged:
            before_it[dim] = 0, size, 1
        else:
            behind_it[dim] = 0, shape_of(part.result)[dim], 1
    sliced = _sliced(operand, before_it, Emitter(InsertPoint.before(collective), part))
    if sliced is operand:
        return
    collective.operands[0] = sliced
    sizes = [size if dim in rearranged else behind_it[dim][1] for dim, size in enumerate(shape_of(result))]
    change_type(result, with_shape(result, sizes))
    replace(part, [_sliced(result, behind_it, before(part))])


def _sliced(value: SSAValue, ranges: Sequence[Range], emit: Emitter) -> SSAValue:
    """Slice `value`, unless the ranges are whole."""
    is_whole = ranges == [(0, size, 1) for size in shape_of(value)]
    return value if is_whole else emit.slice(value, *zip(*ranges, strict=True))
