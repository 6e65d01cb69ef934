"""Inference of result types, and MLIR's errors for wrong or non-inferable types.

    class TransposeOp(InferredResults):
        def infer_types(self) -> Sequence[Attribute]: ...

StableHLO reports failed checks in three forms:

    VerifyException from `verify_`                the operation's name and the message
    VerifyException in `with message_only(op)`    the message alone
    VerifyException from `infer_types`            the message alone, then "failed to infer returned types"
"""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, OpResult
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import DiagnosticError, error, inferred_types_error, op_error
from sdy.stablehlo.checks.shape_checks import as_ranked, compatible_shapes, compatible_type_lists, same_shape


class InferredResults(IRDLOperation):
    """An operation whose result types are inferred from its operands, attributes and regions."""

    @abstractmethod
    def infer_types(self) -> Sequence[Attribute]:
        """Infer the result types. Raises VerifyException if the operation is invalid."""

    def verify_(self) -> None:
        """Check the result types against the inferred ones; overriding methods call this last."""
        verify_inferred(self)


def verify_inferred(op: InferredResults) -> None:
    """Raise DiagnosticError if the type inference fails or the result types are incompatible with its answer."""
    try:
        inferred = op.infer_types()
    except VerifyException as problem:
        raise not_inferred(op, str(problem)) from problem
    check_inferred(op, inferred)


def check_inferred(op: Operation, types: Sequence[Attribute]) -> None:
    """Raise DiagnosticError unless the result types are compatible with the inferred `types`."""
    result_types = op.result_types
    if not compatible_type_lists(types, result_types):
        raise inferred_types_error(op, types, result_types)


def check_inferred_shape(result: OpResult, shape: Sequence[int]) -> None:
    """Raise DiagnosticError unless a result is compatible with an inferred shape; -1 is a dynamic size."""
    type_ = as_ranked(result.type)
    if type_ is None or not compatible_shapes(type_.get_shape(), shape):
        sizes = ", ".join("?" if size < 0 else str(size) for size in shape)
        raise error(result, f"inferred shape '[{sizes}]' is incompatible with return type of operation '{result.type}'")


def not_inferred(op: Operation, message: str) -> DiagnosticError:
    """Return the error of a failed type inference."""
    return DiagnosticError(error(op, message).diagnostic, op_error(op, "failed to infer returned types").diagnostic)


@contextmanager
def message_only(op: Operation) -> Generator[None]:
    """Report failed checks in the `with` block without the operation's name."""
    try:
        yield
    except VerifyException as problem:
        raise error(op, str(problem)) from problem


def with_element_type(
    type_: Attribute, element_type: Attribute
) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
    """Return a tensor type with its element type replaced."""
    if isinstance(type_, TensorType):
        tensor = cast(TensorType[Attribute], type_)
        return TensorType(element_type, tensor.shape, tensor.encoding)
    return UnrankedTensorType(element_type)


def verify_inferred_shapes(op: InferredResults) -> None:
    """Raise DiagnosticError if the result shapes are incompatible with the inferred ones; element types may differ."""
    try:
        inferred = op.infer_types()
    except VerifyException as problem:
        raise not_inferred(op, str(problem)) from problem
    result_types = op.result_types
    if len(inferred) != len(result_types) or not all(map(same_shape, inferred, result_types)):
        raise inferred_types_error(op, inferred, result_types)
