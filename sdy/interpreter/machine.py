"""An interpreter of xDSL that knows every operation there is an implementation of, for the program of one device."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation, OpResult
from xdsl.traits import IsTerminator

from sdy.diagnostics import DiagnosticError, op_error
from sdy.dialect.ops import MeshOp
from sdy.interpreter.batch_norm import BATCH_NORM
from sdy.interpreter.bits import BITS
from sdy.interpreter.checks import CHECKS
from sdy.interpreter.collectives import COLLECTIVES
from sdy.interpreter.comparison import COMPARISON
from sdy.interpreter.control_flow import CONTROL_FLOW, Terminators
from sdy.interpreter.custom_calls import CUSTOM_CALLS
from sdy.interpreter.elementwise import ELEMENTWISE
from sdy.interpreter.grid import Device, DeviceId, Grid, Results, set_device
from sdy.interpreter.indexing import INDEXING
from sdy.interpreter.linear_algebra import LINEAR_ALGEBRA
from sdy.interpreter.manual import MANUAL
from sdy.interpreter.products import PRODUCTS
from sdy.interpreter.random import RANDOM
from sdy.interpreter.reductions import REDUCTIONS
from sdy.interpreter.registry import Meaning, meaning_of
from sdy.interpreter.shaping import SHAPING
from sdy.interpreter.sorting import SORTING
from sdy.interpreter.tables import Implementation, functions
from sdy.interpreter.values import of_type
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations

_FAMILIES: tuple[dict[type[Operation], Implementation], ...] = (
    BATCH_NORM,
    BITS,
    CHECKS,
    COLLECTIVES,
    COMPARISON,
    CONTROL_FLOW,
    CUSTOM_CALLS,
    ELEMENTWISE,
    INDEXING,
    LINEAR_ALGEBRA,
    MANUAL,
    PRODUCTS,
    RANDOM,
    REDUCTIONS,
    SHAPING,
    SORTING,
)

IMPLEMENTATIONS = {op: implementation for family in _FAMILIES for op, implementation in family.items()}
"""What each operation does."""

# To make a table of xDSL's takes as long as to interpret a small program.
_FUNCTIONS = functions(IMPLEMENTATIONS)
_KNOWN = IMPLEMENTATIONS.keys() | {FuncOp, MeshOp, ModuleOp}


class Machine:
    """A module, ready to be run on the devices of a grid."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self._terminators = Terminators()
        unknown = {type(op) for op in operations(module)} - _KNOWN
        self._others = functions({op: _other(op) for op in unknown if not op.has_trait(IsTerminator)})

    def interpreter(self, device: Device) -> Interpreter:
        """An interpreter for the program of `device`."""
        made = Interpreter(self.module)
        for implementations in (_FUNCTIONS, self._terminators, self._others):
            made.register_implementations(implementations)
        set_device(made, device, self.interpreter)
        return made

    def run(self, grid: Grid, programs: Mapping[DeviceId, Callable[[Interpreter], Results]]) -> dict[DeviceId, Results]:
        """The results of each device's program, run together. Raises DiagnosticError where a program goes wrong."""

        def on_device(program: Callable[[Interpreter], Results]) -> Callable[[Device], Results]:
            return lambda device: program(self.interpreter(device))

        with _mistakes_told():
            return grid.run({id_: on_device(program) for id_, program in programs.items()})


def run_function(module: ModuleOp, function: FuncOp, args: PythonValues = ()) -> PythonValues:
    """The results of a function of `module` on one device. Raises DiagnosticError where something goes wrong."""
    alone = DeviceId(0, 0)
    return Machine(module).run(Grid(1, 1), {alone: partial(run_body, function=function, args=args)})[alone]


def run_body(interpreter: Interpreter, function: FuncOp, args: PythonValues) -> PythonValues:
    """The results of `function`, as `interpreter` runs it."""
    return interpreter.run_ssacfg_region(function.body, args, function.sym_name.data)


@contextmanager
def _mistakes_told() -> Generator[None]:
    """Raise the DiagnosticError that began it all; xDSL wraps it once for each operation around its own."""
    try:
        yield
    except DiagnosticError:
        raise
    except Exception as problem:
        cause: BaseException | None = problem
        while cause is not None and not isinstance(cause, DiagnosticError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise cause from None


def _other(op_class: type[Operation]) -> Implementation:
    """What an operation of another dialect does, as it was registered."""
    meaning = meaning_of(op_class.name)
    return _refuse if meaning is None else partial(_computed, meaning)


def _computed(meaning: Meaning, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    given = meaning(op, *args)
    values = cast(tuple[Any, ...], given if isinstance(given, tuple) else (given,))
    if len(values) != len(op.results):
        raise op_error(op, f"has {len(op.results)} results, but {len(values)} were computed")
    return tuple(_result(op, result, value) for result, value in zip(op.results, values, strict=True))


def _result(op: Operation, result: OpResult, value: Any) -> Any:
    if not isinstance(result.type, TensorType):
        return value
    array = of_type(value, result)
    if array.shape != shape_of(result):
        raise op_error(op, f"has a result of shape {list(shape_of(result))}, but {list(array.shape)} was computed")
    return array


def _refuse(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    raise op_error(op, "cannot be interpreted")
