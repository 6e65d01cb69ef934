"""Kind of reduction (sum, max or min) by which an operation combines elements along its reduction factors."""

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, Region, SSAValue

from sdy.dialect.constants import constant_elements
from sdy.passes.spmd.plan.linalg_reduction import linalg_reduction
from sdy.rules.registry import name_of
from sdy.sharding import Reduction
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, OrOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.scatter import ScatterOp

_KINDS: dict[type[Operation], Reduction] = {AddOp: "sum", MaxOp: "max", MinOp: "min"}
_TRUTH = TensorType(i1, ())
_KINDS_OF_TRUTH: dict[type[Operation], Reduction] = {AndOp: "min", OrOp: "max", MinOp: "min", MaxOp: "max"}


def region_reduction(region: Region) -> Reduction | None:
    """Return the reduction that the body `region` computes, or None if no all-reduce can compute it."""
    terminator = region.block.last_op
    assert terminator is not None
    kinds: set[Reduction | None] = set()
    for operand in terminator.operands:
        combined_by = operand.owner
        table = _KINDS_OF_TRUTH if operand.type == _TRUTH else _KINDS
        kinds.add(table.get(type(combined_by)) if isinstance(combined_by, Operation) else None)
    return kinds.pop() if len(kinds) == 1 else None


def operation_reduction(op: Operation) -> Reduction | None:
    """Return the reduction that combines the partial results of `op` if its reduction factors are split.

    Returns:
        The kind of all-reduce. None if no all-reduce combines them, or if `op` is a sum with a nonzero initial value,
        which each device would add.
    """
    match op:
        case ReduceOp():
            kind = region_reduction(op.body)
            return None if kind == "sum" and any(map(_is_known_nonzero, op.init_values)) else kind
        case ScatterOp():
            return region_reduction(op.update_computation)
        case _ if name_of(op).startswith("linalg."):
            return linalg_reduction(op)
        case _:
            return "sum"


def _is_known_nonzero(value: SSAValue) -> bool:
    elements = constant_elements(value)
    # Complex elements are pairs.
    return elements is not None and any(element not in (0, (0, 0)) for element in elements.iter_values())
