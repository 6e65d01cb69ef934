"""Source locations of the operations and tensors of a program."""

from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import Location, location_of
from sdy.dialect.interfaces import defining_op
from sdy.ir.walking import operations
from sdy.passes.account.lint.callers import Callers, library_line
from sdy.passes.account.lint.use_def import UseDefChains

At = Operation | SSAValue | Location | None
"""Anything that has a source location."""


class Places:
    """Source locations in a module."""

    def __init__(self, module: ModuleOp, use_def: UseDefChains) -> None:
        self._module = module
        self._use_def = use_def

    def of(self, at: At) -> Location | None:
        """Return the location of `at`, or else of its first user, or else of the call of its function."""
        place = location_of(at)
        if place is None and isinstance(at, SSAValue):
            users = sorted((use.operation for use in at.uses), key=self._number)
            place = next((of_user for op in users if (of_user := location_of(op))), None)
        op = _operation(at)
        return place or (self._of_call(op) if op is not None else None)

    def callers(self, at: At) -> list[Location]:
        """Return the call sites of the Python function that contains `at`, and of its file."""
        op = _operation(at)
        return self._callers.of(op.location) if op is not None and location_of(op) is not None else []

    def library(self, at: At) -> Location | None:
        """Return the line of a library that computes `at`, if the line of `at` calls one."""
        op = _operation(at)
        return library_line(op.location) if op is not None else None

    def _of_call(self, op: Operation) -> Location | None:
        """Return the location of a call of the function that contains `op`; JAX omits locations in some functions."""
        function: Operation | None = op
        while function is not None and not isinstance(function, FuncOp):
            function = function.parent_op()
        calls = self._use_def.calls_of(function) if function else ()
        return next((place for call in calls if (place := location_of(call))), None)

    @cached_property
    def _callers(self) -> Callers:
        return Callers(self._module)

    @cached_property
    def _numbers(self) -> dict[Operation, int]:
        return {op: number for number, op in enumerate(operations(self._module))}

    def _number(self, op: Operation) -> int:
        return self._numbers.get(op, len(self._numbers))


def python_line(where: Location | None) -> Location | None:
    """Return a location in Python, whose line can stand for many operations; None for one in another program."""
    return where if where and where.filename.endswith(".py") else None


def _operation(at: At) -> Operation | None:
    """Return `at` if it is an operation, or the operation that defines it."""
    if isinstance(at, SSAValue):
        return defining_op(at)
    return at if isinstance(at, Operation) else None
