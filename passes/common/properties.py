"""Properties of operations and values: elementwise and pure operations, uniform values, and sizes in bytes."""

from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import ComplexType, FixedBitwidthType, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.traits import NoMemoryEffect, is_side_effect_free

from sdy.dialect.constants import constant_number
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.ops import PropagationBarrierOp
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_static_tensor, shape
from sdy.rules import is_registered_elementwise, movement
from sdy.stablehlo.checks.agreement import bit_width
from sdy.stablehlo.shape import BitcastConvertOp
from sdy.stablehlo.types.quantized import UniformQuantizedType


def is_elementwise(operation: Operation) -> bool:
    """Return whether each element of the results depends only on the operands' elements at the same indices."""
    if isinstance(operation, BitcastConvertOp):
        return shape(operation.operand.type) == shape(operation.result.type)
    return has_trait(operation, Elementwise) or is_registered_elementwise(operation)


def is_pure(operation: Operation) -> bool:
    """Return whether `operation` has no side effects, so that it may be copied, moved or removed."""
    return has_trait(operation, NoMemoryEffect) or is_side_effect_free(operation)


def uniform_number(value: SSAValue) -> int | float | None:
    """Return the number that all elements of a value are, a constant that is only moved; None if it is unknown."""
    number, owner = constant_number(value), value.owner
    if number is None and isinstance(owner, Operation) and movement(owner.name) is not None:
        return uniform_number(owner.operands[0])
    return number


_BYTE = 8
_COMPOUND_ELEMENTS = {ComplexType, UniformQuantizedType}


@lru_cache(maxsize=2**12)
def num_bytes(type_: Attribute) -> int:
    """Return the bytes of a tensor, at least one per element; 0 for dynamic shapes and other types.

    Memoized, as the few types of a program are asked for at every use of a value.
    """
    if type(type_) is not TensorType or not is_static_tensor(type_):
        return 0
    return prod(type_.get_shape()) * element_bytes(type_)


def value_bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor, at least one per element; 0 for a value of another type, such as a token."""
    return num_bytes(value.type)


def element_bytes(type_: Attribute) -> int:
    """Return the bytes of a tensor's element, at least one; 0 for other types."""
    if type(type_) is not TensorType:
        return 0
    element: Attribute = type_.element_type
    is_sized = type(element) in _COMPOUND_ELEMENTS or isinstance(element, FixedBitwidthType)
    return -(-bit_width(element) // _BYTE) if is_sized else 0


def before_barriers(value: SSAValue) -> SSAValue:
    """Return the input of the propagation barriers that `value` passed through; barriers are identities."""
    while isinstance(value, OpResult) and isinstance(value.op, PropagationBarrierOp):
        value = value.op.operands[0]
    return value
