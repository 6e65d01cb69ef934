"""Python values of interpreted programs.

A tensor is a NumPy array of its element type (from `ml_dtypes` if NumPy lacks it), a token is `TOKEN`, a tuple is a
Python tuple. Integers wrap around in their types; i1 is bool.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.array_types import element_dtype
from sdy.diagnostics import op_error

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]


class Token:
    """The value of a token, which orders side effects."""


TOKEN = Token()

_WIDER: dict[DType, DType] = {
    **{np.dtype(narrow): np.dtype(np.int8) for narrow in (ml_dtypes.int2, ml_dtypes.int4)},
    **{np.dtype(narrow): np.dtype(np.uint8) for narrow in (ml_dtypes.uint2, ml_dtypes.uint4)},
    **{
        np.dtype(narrow): np.dtype(np.float32)
        for narrow in (
            np.float16,
            ml_dtypes.bfloat16,
            ml_dtypes.float4_e2m1fn,
            ml_dtypes.float6_e2m3fn,
            ml_dtypes.float6_e3m2fn,
            ml_dtypes.float8_e3m4,
            ml_dtypes.float8_e4m3,
            ml_dtypes.float8_e4m3b11fnuz,
            ml_dtypes.float8_e4m3fn,
            ml_dtypes.float8_e4m3fnuz,
            ml_dtypes.float8_e5m2,
            ml_dtypes.float8_e5m2fnuz,
            ml_dtypes.float8_e8m0fnu,
        )
    },
}


def widened(array: Array) -> Array:
    """Convert narrow types to types that NumPy computes with: narrow floats to float32, narrow integers to bytes.

    float32 has more than twice the mantissa bits of each narrow float, so double rounding is exact.
    """
    wider = _WIDER.get(array.dtype)
    return array if wider is None else array.astype(wider)


def element_type(value: SSAValue) -> Attribute:
    """Return the element type of a tensor."""
    return cast(TensorType[Attribute], value.type).element_type


def dtype_of(value: SSAValue) -> DType:
    """Return the NumPy type of a tensor's elements.

    Raises:
        DiagnosticError: The element type has no NumPy equivalent.
    """
    dtype = element_dtype(element_type(value))
    if dtype is None:
        owner = value.owner
        problem = f"has a value of type {value.type}, which cannot be interpreted"
        raise op_error(owner if isinstance(owner, Operation) else cast(Operation, owner.parent_op()), problem)
    return dtype


def of_type(array: Any, value: SSAValue) -> Array:
    """Convert `array` to the element type of `value`."""
    return np.asarray(array).astype(dtype_of(value), copy=False)


def bit_width(dtype: DType) -> int:
    """Return the number of bits of an element."""
    if dtype == np.bool_:
        return 1
    if dtype.kind in "iufc" and dtype.isbuiltin:
        return dtype.itemsize * 8
    try:
        return int(ml_dtypes.iinfo(dtype).bits)
    except ValueError:
        return int(float_format(dtype).bits)


def float_format(dtype: DType) -> "np.finfo[Any]":
    """Return the format of a floating-point type."""
    return cast("np.finfo[Any]", ml_dtypes.finfo(dtype))


def constant_array(value: DenseIntOrFPElementsAttr, dtype: DType) -> Array:
    """Return a constant as an array; `dtype` is the NumPy equivalent of its element type."""
    type_ = cast(TensorType[Attribute], value.get_type())
    element_type = type_.element_type
    narrow = isinstance(element_type, IntegerType) and element_type.bitwidth < 8
    stored = np.frombuffer(value.data.data, np.int8 if narrow else dtype)
    if dtype == np.bool_:
        stored = stored != 0
    elif narrow:
        stored = stored.astype(dtype)
    shape = type_.get_shape()
    # A splat has a single element.
    return (
        stored.reshape(shape) if stored.size == math.prod(shape) else np.broadcast_to(stored[:1], (*shape, 1))[..., 0]
    )


def numbers(array: Array) -> tuple[int, ...]:
    """Return the elements of a one-dimensional tensor of integers."""
    return tuple(int(number) for number in array)


def sum_of_products(letters: str, *operands: Array) -> Array:
    """Compute `np.einsum`, but return zeros for empty sums, for which `np.einsum` returns uninitialized memory."""
    result = np.einsum(letters, *operands)
    return result if all(operand.size for operand in operands) else np.zeros_like(result)


def moved_to_end(array: Array, dims: Sequence[int]) -> Array:
    """Transpose `array` so that the dimensions `dims` are last."""
    return array.transpose(*(dim for dim in range(array.ndim) if dim not in dims), *dims)
