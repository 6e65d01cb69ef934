"""The interpreter of a module on a grid of devices, based on xDSL's interpreter."""

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
from sdy.interpreter.registry import Semantics, semantics_of
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
"""The implementation of each operation."""

# Created once: this takes as long as to interpret a small program.
_FUNCTIONS = functions(IMPLEMENTATIONS)
_KNOWN = IMPLEMENTATIONS.keys() | {FuncOp, MeshOp, ModuleOp}


class Machine:
    """A module with the implementations of its operations, to run on the devices of a grid."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self._terminators = Terminators()
        unknown = {type(op) for op in operations(module)} - _KNOWN
        self._others = functions({op: _other(op) for op in unknown if not op.has_trait(IsTerminator)})

    def interpreter(self, device: Device) -> Interpreter:
        """Create an interpreter for the program of `device`."""
        interpreter = Interpreter(self.module)
        for implementations in (_FUNCTIONS, self._terminators, self._others):
            interpreter.register_implementations(implementations)
        set_device(interpreter, device, self.interpreter)
        return interpreter

    def run(self, grid: Grid, programs: Mapping[DeviceId, Callable[[Interpreter], Results]]) -> dict[DeviceId, Results]:
        """Run the programs of the devices of `grid` concurrently, and return their results.

        Raises:
            DiagnosticError: An operation cannot be interpreted or fails.
        """

        def on_device(program: Callable[[Interpreter], Results]) -> Callable[[Device], Results]:
            return lambda device: program(self.interpreter(device))

        with _unwrapped_errors():
            return grid.run({id_: on_device(program) for id_, program in programs.items()})


def run_function(module: ModuleOp, function: FuncOp, args: PythonValues = ()) -> PythonValues:
    """Run a function of `module` on one device.

    Raises:
        DiagnosticError: An operation cannot be interpreted or fails.
    """
    only_device = DeviceId(0, 0)
    return Machine(module).run(Grid(1, 1), {only_device: partial(run_body, function=function, args=args)})[only_device]


def run_body(interpreter: Interpreter, function: FuncOp, args: PythonValues) -> PythonValues:
    """Run the body of `function` with `interpreter`."""
    return interpreter.run_ssacfg_region(function.body, args, function.sym_name.data)


@contextmanager
def _unwrapped_errors() -> Generator[None]:
    """Re-raise the original error, which xDSL wraps once for each enclosing operation.

    It is a DiagnosticError, or says that SciPy is not installed.
    """
    try:
        yield
    except DiagnosticError:
        raise
    except Exception as problem:
        cause: BaseException | None = problem
        while cause is not None and not isinstance(cause, DiagnosticError | ModuleNotFoundError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise cause from None


def _other(op_class: type[Operation]) -> Implementation:
    """Return the registered implementation of an operation of another dialect."""
    semantics = semantics_of(op_class.name)
    return _raise_unknown if semantics is None else partial(_run_registered, semantics)


def _run_registered(semantics: Semantics, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    returned = semantics(op, *args)
    values = cast(tuple[Any, ...], returned if isinstance(returned, tuple) else (returned,))
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


def _raise_unknown(interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    raise op_error(op, "cannot be interpreted")
