"""The checks of MLIR's traits on equal or compatible types of operands and results.

Two quantized element types are compatible if they have the same storage and expressed types; scales may differ.
"""

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects.builtin import ComplexType, FixedBitwidthType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.shape_checks import all_compatible_shapes, compatible_elements, elements_of
from sdy.stablehlo.types.quantized import UniformQuantizedType


def element_type(value: SSAValue) -> Attribute:
    """Return the element type of a tensor, or the type of any other value."""
    return elements_of(value.type)


def bit_width(element: Attribute) -> int:
    """Return the width of an element in bits."""
    match element:
        case ComplexType():
            return 2 * bit_width(cast(Attribute, element.element_type))
        case UniformQuantizedType():
            return element.data.bits
        case _:
            assert isinstance(element, FixedBitwidthType)
            return element.bitwidth


def verify_same_elements(op: Operation) -> None:
    """Raise VerifyException unless all operands and results have the same element type."""
    if not op.operands:
        raise VerifyException("expected 1 or more operands, but found 0")
    if not _all_elements((*op.operands, *op.results), _equal):
        raise VerifyException("requires the same element type for all operands and results")


def verify_elementwise(op: Operation) -> None:
    """Raise VerifyException unless all operands and results have compatible shapes."""
    types = (*op.operand_types, *op.result_types)
    shapes = {type_.get_shape() for type_ in types if isinstance(type_, TensorType)}
    ranked = [isinstance(type_, TensorType) for type_ in types]
    if all(ranked) != any(ranked) or not all_compatible_shapes(shapes):
        raise VerifyException("all non-scalar operands/results must have the same shape and base type")


def verify_same_operand_elements(op: Operation) -> None:
    """Raise VerifyException unless all operands have the same element type."""
    if not _all_elements(op.operands, _equal):
        raise VerifyException("requires the same element type for all operands")


def verify_compatible_elements(op: Operation) -> None:
    """Raise VerifyException unless all operands and results have compatible element types."""
    if not _all_elements((*op.operands, *op.results), compatible_elements):
        raise VerifyException("requires compatible element types for all operands and results")


def verify_compatible_operand_elements(op: Operation) -> None:
    """Raise VerifyException unless all operands have compatible element types."""
    if not _all_elements(op.operands, compatible_elements):
        raise VerifyException("requires compatible element types for all operands")


def verify_all_match(op: Operation, what: str, of: Callable[[SSAValue], object], *names: str) -> None:
    """Raise VerifyException unless `of` is equal for the named operands and results; `what` names it in the message."""
    if len({of(getattr(op, name)) for name in names}) > 1:
        raise VerifyException(f"failed to verify that all of {{{', '.join(names)}}} have same {what}")


def verify_matching_elements(op: Operation, *names: str) -> None:
    """Raise VerifyException unless the named operands and results have the same element type."""
    verify_all_match(op, "element type", element_type, *names)


def _all_elements(values: Sequence[SSAValue], agree: Callable[[Attribute, Attribute], bool]) -> bool:
    first, *rest = map(element_type, values)
    return all(agree(element, first) for element in rest)


def _equal(type_: Attribute, other: Attribute) -> bool:
    return type_ == other
