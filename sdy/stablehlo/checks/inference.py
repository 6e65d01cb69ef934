"""The types that an operation's results must have, and what MLIR says where they have others or none can be told.

    class TransposeOp(InferredResults):
        def infer_types(self) -> Sequence[Attribute]: ...

StableHLO's checks come in three forms, which differ in what is said around the same message:

    requires ...                 `VerifyException`: after the operation's name
    expects ... to be ...        the same inside `with unnamed(op)`: the message alone
    expects ... to be ...        the same inside `infer_types`: the message alone, and that no types could be inferred
"""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Attribute, Operation, OpResult
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import DiagnosticError, error, inferred_types_error, op_error
from sdy.stablehlo.checks.shape_checks import as_ranked, compatible_shapes, compatible_type_lists


class InferredResults(IRDLOperation):
    """An operation whose operands, attributes and regions say which types its results have."""

    @abstractmethod
    def infer_types(self) -> Sequence[Attribute]:
        """The types of the results. Raises VerifyException where there are none."""

    def verify_(self) -> None:
        """Refuse results of types that contradict the inferred ones: the last check of an operation that has others."""
        verify_inferred(self)


def verify_inferred(op: InferredResults) -> None:
    """Raises DiagnosticError where no types can be inferred, or others than the results have."""
    try:
        inferred = op.infer_types()
    except VerifyException as problem:
        raise not_inferred(op, str(problem)) from problem
    check_inferred(op, inferred)


def check_inferred(op: Operation, types: Sequence[Attribute]) -> None:
    """Refuse results that are not of these types, the inferred ones; a dynamic size agrees with any."""
    found = op.result_types
    if not compatible_type_lists(types, found):
        raise inferred_types_error(op, types, found)


def check_inferred_shape(result: OpResult, shape: Sequence[int]) -> None:
    """Refuse a result of another shape, as operations say it that infer the shape alone; -1 is a dynamic size."""
    type_ = as_ranked(result.type)
    if type_ is None or not compatible_shapes(type_.get_shape(), shape):
        sizes = ", ".join("?" if size < 0 else str(size) for size in shape)
        raise error(result, f"inferred shape '[{sizes}]' is incompatible with return type of operation '{result.type}'")


def not_inferred(op: Operation, message: str) -> DiagnosticError:
    """An error to raise about an operation for which no types can be inferred."""
    return DiagnosticError(error(op, message).diagnostic, op_error(op, "failed to infer returned types").diagnostic)


@contextmanager
def unnamed(op: Operation) -> Generator[None]:
    """Say what the checks inside the `with` block find without the operation's name."""
    try:
        yield
    except VerifyException as problem:
        raise error(op, str(problem)) from problem
