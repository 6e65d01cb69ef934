"""How an operation combines the elements, or the partial results of several devices, along what it sums over."""

from xdsl.ir import Operation, Region

from sdy.sharding import Reduction
from sdy.stablehlo.elementwise import AddOp, MaxOp, MinOp
from sdy.stablehlo.gather_scatter import ScatterOp
from sdy.stablehlo.reduction import ReduceOp

_KINDS: dict[type[Operation], Reduction] = {AddOp: "sum", MaxOp: "max", MinOp: "min"}


def region_reduction(region: Region) -> Reduction | None:
    """How `region` combines two elements, None if in no way that partial results could be combined."""
    terminator = region.block.last_op
    assert terminator is not None
    kinds: set[Reduction | None] = set()
    for operand in terminator.operands:
        combined_by = operand.owner
        kinds.add(_KINDS.get(type(combined_by)) if isinstance(combined_by, Operation) else None)
    return kinds.pop() if len(kinds) == 1 else None


def operation_reduction(op: Operation) -> Reduction | None:
    """How the partial results of `op` are combined where its reduction factors are split, None if they cannot be."""
    match op:
        case ReduceOp():
            return region_reduction(op.body)
        case ScatterOp():
            return region_reduction(op.update_computation)
        case _:
            return "sum"
