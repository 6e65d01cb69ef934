"""Verification of operands that hold shapes, if they are constants."""

from typing import cast

from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from sdy.ir.elements import folded_elements
from sdy.stablehlo.checks.shape_checks import compatible_elements, compatible_shapes, within_bounds
from sdy.stablehlo.types.quantized import UniformQuantizedType
from sdy.stablehlo.types.sizes import sizes_text


def constant_integers(value: SSAValue) -> tuple[int, ...] | None:
    """Return the integers of a constant operand, None for any other operand."""
    elements = folded_elements(value)
    if elements is None or not isinstance(elements.get_element_type(), IntegerType | IndexType):
        return None
    return cast(tuple[int, ...], elements.get_values())


def verify_shape_operand(shape: SSAValue, result: TensorType[Attribute]) -> None:
    """Raise VerifyException if the result is incompatible with the shape in a constant operand."""
    sizes = constant_integers(shape)
    if sizes is None:
        return
    fits = compatible_shapes(sizes, result.get_shape()) and within_bounds(sizes, result.encoding)
    if min(sizes, default=0) < 0 or not fits:
        raise VerifyException(
            f"output shape [{sizes_text(sizes)}] is incompatible with return type of operation '{result}'"
        )


def verify_reinterpretable_elements(operand: TensorType[Attribute], result: TensorType[Attribute]) -> None:
    """Raise VerifyException if unquantized operand and result differ in element type."""
    elements = operand.element_type, result.element_type
    if any(isinstance(element, UniformQuantizedType) for element in elements):
        return
    if not compatible_elements(*elements):
        raise VerifyException(
            f"expects operand and result to have compatible element type. Got: '{operand}' and '{result}'"
        )
