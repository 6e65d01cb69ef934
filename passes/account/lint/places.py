"""Where in the source the operations and tensors of a program are."""

from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import Location, location_of
from sdy.dialect.interfaces import defining_op
from sdy.ir.walking import operations
from sdy.passes.account.lint.callers import Callers
from sdy.passes.account.lint.use_def import UseDefChains

At = Operation | SSAValue | Location | None
"""What has a place."""


class Places:
    """The places of what is in a module."""

    def __init__(self, module: ModuleOp, use_def: UseDefChains) -> None:
        self._module = module
        self._use_def = use_def

    def of(self, at: At) -> Location | None:
        """Where that is; where it is used or called, if nobody knows."""
        found = location_of(at)
        if found is None and isinstance(at, SSAValue):
            users = sorted((use.operation for use in at.uses), key=self._number)
            found = next((place for op in users if (place := location_of(op))), None)
        op = _operation(at)
        return found or (self._of_call(op) if op is not None else None)

    def caller(self, at: At) -> Location | None:
        """Where the function of Python is called that it is in."""
        op = _operation(at)
        return self._callers.of(op.location) if op is not None and location_of(op) is not None else None

    def _of_call(self, op: Operation) -> Location | None:
        """Where the function is called that `op` is in; of what is in some functions jax does not tell where it is."""
        around: Operation | None = op
        while around is not None and not isinstance(around, FuncOp):
            around = around.parent_op()
        calls = self._use_def.calls_of(around) if around else ()
        return next((place for call in calls if (place := location_of(call))), None)

    @cached_property
    def _callers(self) -> Callers:
        return Callers(self._module)

    @cached_property
    def _numbers(self) -> dict[Operation, int]:
        return {op: number for number, op in enumerate(operations(self._module))}

    def _number(self, op: Operation) -> int:
        return self._numbers.get(op, len(self._numbers))


def _operation(at: At) -> Operation | None:
    """The operation that this is, or is defined by."""
    if isinstance(at, SSAValue):
        return defining_op(at)
    return at if isinstance(at, Operation) else None
