"""`sdy-expand-after-collectives`: collectives of the elements before a broadcast."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import NamedTuple, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import AnalysisPreservingPass, erase_unused, insert, replace
from sdy.ir.shapes import is_static_tensor, num_elements, shape_of
from sdy.ir.walking import operations_of
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp
from sdy.stablehlo.emitter import Emitter, with_shape
from sdy.stablehlo.reducing_collectives import AllReduceOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp

_COLLECTIVES = (AllGatherOp, AllReduceOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp)
"""The collectives that treat all elements along the other dimensions alike."""

_DIMS = ("all_gather_dim", "split_dimension", "concat_dimension")
"""The properties that name a dimension of the operand."""

_Movement: TypeAlias = BroadcastInDimOp | ReshapeOp | TransposeOp


class ExpandAfterCollectivesPass(AnalysisPreservingPass):
    """Broadcast the result of a collective instead of its operand.

    Before::

        %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x8xf32>
        %2 = stablehlo.reshape %1 : (tensor<2x3x8xf32>) -> tensor<2x24xf32>
        %3 = "stablehlo.all_gather"(%2) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x24xf32>) -> tensor<8x24xf32>

    After::

        %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x3xf32>) -> tensor<8x3xf32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<8x3xf32>) -> tensor<8x3x8xf32>
        %3 = stablehlo.reshape %2 : (tensor<8x3x8xf32>) -> tensor<8x24xf32>

    Reshapes and transposes may be between them. Unchanged are operands with further uses, which are computed in any
    case, and dimensions that the collective splits or concatenates and the broadcast creates or repeats, or a reshape
    divides or merges.
    """

    name = "sdy-expand-after-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for collective in operations_of(op, *_COLLECTIVES):
            if len(collective.operands) == 1 and is_static_tensor(collective.operands[0].type):
                _expand_after(collective)


class _Step(NamedTuple):
    """A movement of elements, and the dimensions of the collective in its operand and in its result."""

    movement: _Movement
    before: Sequence[int]
    after: Sequence[int]


def _expand_after(collective: Operation) -> None:
    """Move the broadcasts of the operand, and the movements behind them, behind the collective."""
    names = [name for name in _DIMS if name in collective.properties]
    steps = _steps(collective.operands[0], [_number(collective.properties[name]) for name in names])
    sizes = [num_elements(collective.operands[0]), *[num_elements(step.movement.operand) for step in steps]]
    steps = steps[: sizes.index(min(sizes))]
    if not steps:
        return
    source = steps[-1].movement.operand
    dims = zip(names, steps[-1].before, strict=True)
    properties: dict[str, Attribute] = {**collective.properties, **{name: IntegerAttr(dim, i64) for name, dim in dims}}
    shape = [*shape_of(source)]
    for before, after in zip(steps[-1].before, steps[0].after, strict=True):
        shape[before] = shape_of(collective.results[0])[after]
    smaller = collective.__class__.create(
        operands=[source],
        properties=properties,
        result_types=[with_shape(source, shape)],
        regions=[region.clone() for region in collective.regions],
    )
    smaller.location = collective.location
    insert(smaller, InsertPoint.before(collective))
    value: SSAValue = smaller.results[0]
    for step in reversed(steps):
        value = _repeated(step, value, Emitter(InsertPoint.before(collective), step.movement))
    replace(collective, [value])
    erase_unused([steps[0].movement.result])


def _number(attribute: Attribute) -> int:
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def _steps(value: SSAValue, dims: Sequence[int]) -> list[_Step]:
    """Return the movements of elements that compute `value` and keep its dimensions `dims`, the last one first."""
    steps: list[_Step] = []
    while isinstance(op := value.owner, _Movement) and value.has_one_use() and is_static_tensor(op.operand.type):
        kept = [dim for dim in map(partial(_dim_before, op), dims) if dim is not None]
        if len(kept) < len(dims):
            break
        steps.append(_Step(op, kept, dims))
        value, dims = op.operand, kept
    return steps


def _dim_before(op: _Movement, dim: int) -> int | None:
    """Return the dimension of the operand that a dimension of the result is; None if it is repeated or divided."""
    old, new = shape_of(op.operand), shape_of(op.result)
    match op:
        case TransposeOp():
            return op.permutation.get_values()[dim]
        case BroadcastInDimOp():
            dims = op.broadcast_dimensions.get_values()
            return dims.index(dim) if dim in dims and old[dims.index(dim)] == new[dim] else None
        case ReshapeOp():
            sizes = (prod(new[:dim]), new[dim])
            return next((at for at, size in enumerate(old) if (prod(old[:at]), size) == sizes), None)


def _repeated(step: _Step, value: SSAValue, emit: Emitter) -> SSAValue:
    """Move the elements of `value`, which differs from the operand in the sizes of the dimensions of the collective."""
    op, shape = step.movement, [*shape_of(step.movement.result)]
    for before, after in zip(step.before, step.after, strict=True):
        shape[after] = shape_of(value)[before]
    match op:
        case TransposeOp():
            return emit.transpose(value, op.permutation.get_values())
        case BroadcastInDimOp():
            return emit.broadcast(value, op.broadcast_dimensions.get_values(), shape)
        case ReshapeOp():
            return emit.reshape(value, shape)
