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


class DeviceScalars:
    """The integers that devices compute from their numbers.

    Args:
        devices: The number of devices, which are partitions of a program.
    """

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._known: dict[str, Sequence[int] | None] = {}
        """The integers by the text of the function that computes them: layers compute the same ones."""

    def integers(self, value: SSAValue) -> Sequence[int] | None:
        """Return an integer on each device; None if it depends on more than the number of the device."""
        is_integer = isinstance(tensor_type(value).element_type, IntegerType)
        operations = _producers(value) if is_integer else None
        if operations is None:
            return None
        function = _function(operations, value)
        key = str(function)
        if key not in self._known:
            self._known[key] = self._run(function)
        return self._known[key]

    def _run(self, function: FuncOp) -> Sequence[int] | None:
        from sdy.interpreter.grid import DeviceId, Grid  # few programs need them
        from sdy.interpreter.machine import Machine, run_body

        programs = {
            DeviceId(0, number): partial(run_body, function=function, args=()) for number in range(self._devices)
        }
        try:
            results = Machine(ModuleOp([function])).run(Grid(1, self._devices), programs)
        except DiagnosticError:  # an operation of another package, without semantics
            return None
        return [int(results[device][0]) for device in programs]


def _function(operations: Sequence[Operation], value: SSAValue) -> FuncOp:
    """Return a function of no arguments that computes `value` by copies of `operations`."""
    copies: dict[SSAValue, SSAValue] = {}
    body: list[Operation] = []
    for op in operations:
        body.append(op.clone({operand: copies[_source(operand)] for operand in op.operands}))
        copies.update(zip(op.results, body[-1].results, strict=True))
    result = copies[_source(value)]
    block = Block([*body, ReturnOp(result)])
    return FuncOp("computed", FunctionType.from_lists([], [result.type]), Region(block))


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
