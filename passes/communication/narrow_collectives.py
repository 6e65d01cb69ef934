"""`sdy-narrow-collectives`: collectives of the narrower side of a cast."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import AnalysisPreservingPass, change_type, erase, insert, insert_for_other_uses, replace
from sdy.ir.shapes import is_static_tensor, tensor_of
from sdy.ir.walking import operations_of
from sdy.passes.common.properties import element_bytes
from sdy.rules import movement
from sdy.stablehlo.checks.agreement import bit_width, element_type
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp
from sdy.stablehlo.elementwise import ConvertOp
from sdy.stablehlo.mixed_elementwise import SelectOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp

_COLLECTIVES = (AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp)
"""The collectives that move elements, or set them to zero. Reductions compute in the type of their operand."""

_FIRST = slice(1)

_MOVED: Mapping[type[Operation], slice] = {
    **dict.fromkeys((*_COLLECTIVES, DynamicSliceOp, ReshapeOp, SliceOp), _FIRST),
    **dict.fromkeys((DynamicUpdateSliceOp, PadOp), slice(2)),
    ConcatenateOp: slice(None),
    SelectOp: slice(1, 3),
}
"""Operations that move elements, apart from registered movements, and the operands whose elements they move."""


class NarrowCollectivesPass(AnalysisPreservingPass):
    """Move casts across collectives that only move elements, where devices then receive fewer bytes.

    A cast to a narrower type moves before the collective. Before::

        %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %2 = stablehlo.convert %1 : (tensor<8x8xf32>) -> tensor<8x8xbf16>

    After::

        %0 = stablehlo.convert %arg0 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xbf16>) -> tensor<8x8xbf16>
        %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x8xbf16>) -> tensor<8x8xbf16>

    A cast to a wider type moves behind it. Before::

        %0 = stablehlo.convert %arg0 : (tensor<8x8xi8>) -> tensor<8x8xf32>
        %1 = stablehlo.slice %0 [7:8, 0:8] : (tensor<8x8xf32>) -> tensor<1x8xf32>
        %2 = "stablehlo.collective_permute"(%1) <{...}> : (tensor<1x8xf32>) -> tensor<1x8xf32>

    After::

        %0 = stablehlo.slice %arg0 [7:8, 0:8] : (tensor<8x8xi8>) -> tensor<1x8xi8>
        %1 = "stablehlo.collective_permute"(%0) <{...}> : (tensor<1x8xi8>) -> tensor<1x8xi8>
        %2 = stablehlo.convert %1 : (tensor<1x8xi8>) -> tensor<1x8xf32>

    A cast is elementwise, so the results are equal. Operations between it and the collective may move elements, too, if
    nothing else uses their results. Collectives with another user than casts to one type are unchanged, as are casts
    behind an optimization barrier or in another iteration of a loop, and casts to types of less than a byte, apart from
    booleans. The planner moves reshards across most casts; the remaining ones are those behind a transpose, and those
    beside a halo exchange.
    """

    name = "sdy-narrow-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        collectives = [each for each in operations_of(op, *_COLLECTIVES) if len(each.operands) == 1]
        for collective in collectives:
            _widen_behind(collective)
        for collective in reversed(collectives):
            _narrow_before(collective)


def _widen_behind(collective: Operation) -> None:
    """Move a cast of the operand to a wider type behind the collective."""
    moves = [collective]
    while _moves_one(source := moves[-1].operands[0].owner):
        moves.append(source)
    if not isinstance(source, ConvertOp) or not _is_narrower(source.operand, source.result):
        return
    moves[-1].operands[0] = source.operand
    for op in moves:
        _change_elements(op.results[0], element_type(source.operand))
    cast = _cast(collective.results[0], source)
    insert_for_other_uses(collective.results[0], cast, InsertPoint.after(collective))
    cast.location = source.location
    if source.result.first_use is None:
        erase(source)


def _moves_one(op: object) -> TypeGuard[Operation]:
    """Return whether `op` moves the elements of its first operand alone, to a result with one use."""
    return isinstance(op, Operation) and _moved(op) == _FIRST and op.results[0].has_one_use()


def _narrow_before(collective: Operation) -> None:
    """Move the casts of the result to a narrower type before the collective."""
    moves = [collective]
    while (user := _only_movement(moves[-1].results[0])) is not None:
        moves.append(user)
    casts = _narrowing_casts(moves[-1].results[0])
    if not casts:
        return
    for op in moves:
        for index in _moved_operands(op):
            if element_type(op.operands[index]) != element_type(casts[0].result):
                cast = _cast(op.operands[index], casts[0])
                insert(cast, InsertPoint.before(op))
                op.operands[index] = cast.result
        _change_elements(op.results[0], element_type(casts[0].result))
    for cast in casts:
        replace(cast, [cast.operand])


def _only_movement(value: SSAValue) -> Operation | None:
    """Return the only user of `value` if it moves its elements."""
    use = value.get_unique_use()
    return use.operation if use is not None and use.index in _moved_operands(use.operation) else None


def _moved_operands(op: Operation) -> Sequence[int]:
    """Return the indices of the operands whose elements `op` moves."""
    moved = _moved(op)
    return () if moved is None else range(len(op.operands))[moved]


def _moved(op: Operation) -> slice | None:
    return _MOVED.get(type(op)) if movement(op.name) is None else _FIRST


def _narrowing_casts(value: SSAValue) -> Sequence[ConvertOp]:
    """Return the users of `value` if all of them cast it to the same narrower type."""
    users = [use.operation for use in value.uses]
    casts = [op for op in users if isinstance(op, ConvertOp) and _is_narrower(op.result, value)]
    return casts if len(casts) == len(users) and len({cast.result.type for cast in casts}) == 1 else ()


def _is_narrower(value: SSAValue, other: SSAValue) -> bool:
    """Return whether the elements of `value`, whole bytes or booleans, have fewer bytes than those of `other`."""
    element = element_type(value)
    is_narrower = 0 < element_bytes(value.type) < element_bytes(other.type) and is_static_tensor(value.type)
    return is_narrower and (element == i1 or bit_width(element) % 8 == 0)


def _cast(value: SSAValue, like: ConvertOp) -> ConvertOp:
    """Return a cast of `value` to the element type of the cast `like`, at its location."""
    type_ = _with_elements(value, element_type(like.result))
    return ConvertOp.create(operands=[value], result_types=[type_], location=like.location)


def _change_elements(value: SSAValue, element: Attribute) -> None:
    change_type(value, _with_elements(value, element))


def _with_elements(value: SSAValue, element: Attribute) -> TensorType[Attribute]:
    type_ = tensor_type(value)
    return tensor_of(element, type_.get_shape(), type_.encoding)
