"""Scalars that each device computes from its number, such as the start of the slice that it keeps."""

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import FunctionType, IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from sdy.diagnostics import DiagnosticError
from sdy.passes.common.known_scalars import is_foldable
from sdy.passes.common.loops import carried_unchanged
from sdy.stablehlo import ConstantOp, DynamicSliceOp, PartitionIdOp, ReshapeOp, WhileOp
from sdy.stablehlo.checks.shape_checks import tensor_type

_COMPUTED = (ConstantOp, DynamicSliceOp, PartitionIdOp, ReshapeOp)
"""Operations, besides those on scalars, that compute a scalar from the number of the device: it indexes a table."""


def integers_by_device(value: SSAValue, devices: int) -> Sequence[int] | None:
    """Return an integer on each of `devices` partitions; None if it depends on more than the number of the device."""
    if not isinstance(tensor_type(value).element_type, IntegerType):
        return None
    operations = _producers(value)
    if operations is None:
        return None
    from sdy.interpreter.grid import DeviceId, Grid  # few programs need them
    from sdy.interpreter.machine import Machine, run_body

    copies: dict[SSAValue, SSAValue] = {}
    body: list[Operation] = []
    for op in operations:
        body.append(op.clone({operand: copies[_source(operand)] for operand in op.operands}))
        copies.update(zip(op.results, body[-1].results, strict=True))
    result = copies[_source(value)]
    block = Block([*body, ReturnOp(result)])
    function = FuncOp("computed", FunctionType.from_lists([], [result.type]), Region(block))
    programs = {DeviceId(0, number): partial(run_body, function=function, args=()) for number in range(devices)}
    try:
        results = Machine(ModuleOp([function])).run(Grid(1, devices), programs)
    except DiagnosticError:  # an operation of another package, without semantics
        return None
    return [int(results[device][0]) for device in programs]


def _producers(value: SSAValue) -> Sequence[Operation] | None:
    """Return the operations that compute a scalar in order; None if they read more than the number of the device."""
    producers: dict[Operation, None] = {}
    pending = [value]
    while pending:
        op = _source(pending[-1]).owner
        if op in producers:
            pending.pop()
            continue
        if not isinstance(op, Operation) or not (isinstance(op, _COMPUTED) or is_foldable(op)):
            return None
        missing = [operand for operand in op.operands if _source(operand).owner not in producers]
        if missing:
            pending += missing
        else:
            producers[op] = None
            pending.pop()
    return [*producers]


def _source(value: SSAValue) -> SSAValue:
    """Return the value that a loop carries unchanged as `value`, or `value`."""
    while isinstance(block := value.owner, Block) and isinstance(loop := block.parent_op(), WhileOp):
        before = carried_unchanged(loop).get(value)
        if before is None:
            break
        value = before
    return value
