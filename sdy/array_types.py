"""NumPy element types and shapes of MLIR tensor types."""

from functools import cache
from typing import cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from sdy.diagnostics import Where, error

_DTYPES: dict[str, type[np.generic]] = {
    "i1": np.bool_,
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


@cache
def element_dtype(element_type: Attribute) -> np.dtype[np.generic] | None:
    """Return the NumPy dtype of an MLIR element type; None if NumPy and ml_dtypes have no such type."""
    dtype = _DTYPES.get(str(element_type))
    return None if dtype is None else np.dtype(dtype)


def array_type(type_: Attribute, where: Where) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return the shape and NumPy dtype of arrays of an MLIR type.

    Args:
        type_: The MLIR type of a value.
        where: Location of errors.

    Raises:
        DiagnosticError: No array has the type: a token, an unknown element type, or a dynamic shape.
    """
    if not isinstance(type_, TensorType):
        raise error(where, f"a value of type {type_} cannot be passed to or from a program")
    element, shape = cast(TensorType[Attribute], type_).element_type, type_.get_shape()
    dtype = element_dtype(element)
    if dtype is None:
        raise error(where, f"no array has elements of type {element}")
    if DYNAMIC_INDEX in shape:
        raise error(where, f"arrays have static shapes, but this has type {type_}")
    return shape, dtype
