"""How an operation combines elements, and the partial results of devices, along the factors that it reduces."""

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, Region, SSAValue

from sdy.dialect.constants import constant_elements
from sdy.passes.spmd.reshards.linalg_reduction import linalg_reduction
from sdy.rules.registry import name_of
from sdy.sharding import Reduction
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, OrOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.scatter import ScatterOp

_KINDS: dict[type[Operation], Reduction] = {AddOp: "sum", MaxOp: "max", MinOp: "min"}
_TRUTH = TensorType(i1, ())
_KINDS_OF_TRUTH: dict[type[Operation], Reduction] = {AndOp: "min", OrOp: "max", MinOp: "min", MaxOp: "max"}


def region_reduction(region: Region) -> Reduction | None:
    """How `region` combines two elements, None if partial results cannot be combined so."""
    terminator = region.block.last_op
    assert terminator is not None
    kinds: set[Reduction | None] = set()
    for operand in terminator.operands:
        combined_by = operand.owner
        table = _KINDS_OF_TRUTH if operand.type == _TRUTH else _KINDS
        kinds.add(table.get(type(combined_by)) if isinstance(combined_by, Operation) else None)
    return kinds.pop() if len(kinds) == 1 else None


def operation_reduction(op: Operation) -> Reduction | None:
    """How the partial results of `op` are combined where its reduction factors are split, None if they cannot be.

    They cannot in a sum that starts from another value than zero, as each device would add that value.
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
    # A complex number is a pair.
    return elements is not None and any(element not in (0, (0, 0)) for element in elements.iter_values())
