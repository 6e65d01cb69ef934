"""Memory traffic: how many times an operation reads each operand from memory and writes each result to it.

Fused values cause no traffic, and a fusion reads each of its operands once. A slice or gather reads only the elements
it returns, and an in-place update writes only the elements it changes. A reshape that adds or removes dimensions of
size 1 is a view.
"""

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.dialect.attributes import ORDERS
from sdy.ir.fast_access import is_terminator
from sdy.ir.shapes import shape_of
from sdy.passes.common.donations import is_donated
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.stablehlo import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CollectivePermuteOp,
    DynamicGatherOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ReduceScatterOp,
    ScatterOp,
    SliceOp,
)
from sdy.stablehlo.shape import ReshapeOp

_COLLECTIVES = {AllGatherOp, AllReduceOp, AllToAllOp, CollectivePermuteOp, ReduceScatterOp}
_COMBINED = 2
"""A scatter reads and writes the elements that it combines with an update."""

_SLICES = {SliceOp, DynamicSliceOp, GatherOp, DynamicGatherOp}

Times = tuple[int, ...]
"""The number of full reads of each operand, then of full writes of each result."""


def times_in_memory(op: Operation, fused: FusedValues) -> Times:
    """Return the number of memory reads of each operand and writes of each result, 0 for `fused` values.

    A collective counts as communication only; a terminator and an ordering barrier cause no traffic.
    """
    if type(op) in _COLLECTIVES or is_terminator(op) or ORDERS in op.attributes:
        return (0,) * (len(op.operands) + len(op.results))
    read = tuple([int(_is_in_memory(value, fused) and op in fused.readers_of(value)) for value in op.operands])
    written = tuple([int(_is_in_memory(value, fused) or fused.is_returned(value)) for value in op.results])
    if type(op) in _SLICES:
        slice_reads = read[0] or int(_is_only_sliced(op.operands[0], fused))
        return 0, *read[1:], slice_reads + written[0]
    if isinstance(op, ReshapeOp) and read[0] and _is_view(op):
        return 0, 0
    if isinstance(op, DynamicUpdateSliceOp) and _is_updated_in_place(op.operand):
        return 0, 1 + read[1], *read[2:], 0
    if isinstance(op, ScatterOp) and all(map(_is_updated_in_place, op.inputs)):
        kept = (0,) * len(op.inputs)
        indices, *updates = read[len(kept) :]
        return *kept, indices, *(_COMBINED + each for each in updates), *kept
    if op.results and all(_is_only_sliced(result, fused) for result in op.results):
        return (0,) * (len(read) + len(written))
    return *read, *written


def _is_in_memory(value: SSAValue, fused: FusedValues) -> bool:
    return value not in fused and value_bytes(value) > 0


def _is_only_sliced(value: SSAValue, fused: FusedValues) -> bool:
    """Return whether `value` is fused into slices, so that only the sliced elements are computed."""
    return value in fused and all(type(use.operation) in _SLICES for use in value.uses)


def _is_view(op: ReshapeOp) -> bool:
    """Return whether the reshape only adds or removes dimensions of size 1, which no memory layout pads."""
    before, after = ([size for size in shape_of(value) if size != 1] for value in (op.operand, op.result))
    return before == after


def _is_updated_in_place(value: SSAValue) -> bool:
    """Return whether the only user of `value` may overwrite it, as it may a donated but no other function argument."""
    if not value.has_one_use():
        return False
    if not isinstance(value, BlockArgument):
        return True
    function = value.owner.parent_op()
    return not isinstance(function, FuncOp) or is_donated(function, value.index)
