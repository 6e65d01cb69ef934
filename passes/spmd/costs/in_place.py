"""In-place operations: results that may alias the buffer of an operand."""

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp

_PLACEMENT = "annotate_device_placement"


def is_placement(op: Operation) -> bool:
    """Return whether `op` is JAX's placement annotation, which moves its operand to host or device memory."""
    return isinstance(op, CustomCallOp) and op.call_target_name.data == _PLACEMENT


def in_place(op: Operation) -> Iterable[tuple[SSAValue, SSAValue]]:
    """Return the pairs of an operand and a result that may alias it."""
    if isinstance(op, WhileOp):
        return zip(op.operands, op.results, strict=True)
    if isinstance(op, DynamicUpdateSliceOp):
        return [(op.operand, op.result)]
    if isinstance(op, ScatterOp):
        return zip(op.inputs, op.results, strict=True)
    if is_placement(op):
        return zip(op.operands, op.results, strict=True)
    return ()
