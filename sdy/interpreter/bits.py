"""Bit operations: shifts, bit counts, bitcasts, reduced precision."""

from typing import cast

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.quantization import storage_dtype
from sdy.interpreter.tables import Implementation, Kernel, elementwise
from sdy.interpreter.values import Array, DType, bit_width, float_format, of_type, widened
from sdy.stablehlo.chlo import elementwise as chlo


def unsigned(array: Array) -> Array:
    """Reinterpret integers as unsigned, in a native NumPy type."""
    bits = bit_width(array.dtype)
    wide = widened(array)
    mask = np.array((1 << bits) - 1, f"u{wide.dtype.itemsize}")
    return wide.astype(mask.dtype) & mask


def _shift(shifted: Array, amount: Array, beyond: Array | int, bits: int) -> Array:
    """Return `shifted`, or `beyond` for elements whose unsigned shift amount is not less than the number of bits."""
    return np.where(unsigned(amount) < bits, shifted, beyond)


def _amount(y: Array, bits: int) -> Array:
    return np.minimum(unsigned(y), bits - 1)


def _shift_left(x: Array, y: Array) -> Array:
    bits = bit_width(x.dtype)
    return _shift(np.left_shift(unsigned(x), _amount(y, bits)), y, 0, bits)


def _shift_right_logical(x: Array, y: Array) -> Array:
    bits = bit_width(x.dtype)
    return _shift(np.right_shift(unsigned(x), _amount(y, bits)), y, 0, bits)


def _shift_right_arithmetic(x: Array, y: Array) -> Array:
    bits = bit_width(x.dtype)
    shift = widened(x).dtype.itemsize * 8 - bits
    signed = np.left_shift(unsigned(x), shift).view(f"i{widened(x).dtype.itemsize}")
    signed = np.right_shift(signed, shift)
    return np.right_shift(signed, _amount(y, bits).astype(signed.dtype))


def _leading_zeros(x: Array) -> Array:
    bits, rest = bit_width(x.dtype), unsigned(x)
    length = np.zeros(x.shape, np.int64)
    for _ in range(bits):
        length += rest != 0
        rest = rest >> 1
    return bits - length


def _high_product(x: Array, y: Array) -> Array:
    bits = bit_width(x.dtype)
    return (widened(x).astype(object) * widened(y).astype(object)) >> bits


_KERNELS: dict[type[Operation], Kernel] = {
    stablehlo.ClzOp: _leading_zeros,
    stablehlo.PopulationCountOp: lambda x: np.bitwise_count(unsigned(x)),
    stablehlo.ShiftLeftOp: _shift_left,
    stablehlo.ShiftRightArithmeticOp: _shift_right_arithmetic,
    stablehlo.ShiftRightLogicalOp: _shift_right_logical,
    chlo.MulhiOp: _high_product,
}


def _to_bits(array: Array) -> Array:
    """Return the bits of each element along a new last dimension, lowest first."""
    width = bit_width(array.dtype)
    as_bytes = np.asarray(array, order="C")[..., np.newaxis].view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, bitorder="little")[..., :width]


def _from_bits(bits: Array, dtype: DType) -> Array:
    missing = dtype.itemsize * 8 - bit_width(dtype)
    if missing and dtype.name.startswith("int"):
        # Narrow integers are stored sign-extended.
        bits = np.concatenate([bits, np.repeat(bits[..., -1:], missing, axis=-1)], axis=-1)
    return np.packbits(bits, axis=-1, bitorder="little").view(dtype)[..., 0]


def _bitcast(interpreter: Interpreter, op: stablehlo.BitcastConvertOp, args: PythonValues) -> PythonValues:
    """Reinterpret bits; the last dimension of the narrower side has the parts of a wide element, lowest first."""
    array, dtype = cast(Array, args[0]), storage_dtype(op.result)
    source, target = bit_width(array.dtype), bit_width(dtype)
    bits = _to_bits(array)
    if source < target:
        bits = bits.reshape(*array.shape[:-1], target)
    elif source > target:
        bits = bits.reshape(*array.shape, source // target, target)
    return (_from_bits(bits, dtype),)


def _reduce_precision(interpreter: Interpreter, op: stablehlo.ReducePrecisionOp, args: PythonValues) -> PythonValues:
    """Round to nearest even with fewer mantissa bits; overflow becomes infinite, underflow zero."""
    x: Array = args[0]
    format_ = float_format(x.dtype)
    exponent_bits, mantissa_bits = op.exponent_bits.value.data, op.mantissa_bits.value.data
    bits = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    dropped = max(int(format_.nmant) - mantissa_bits, 0)
    sign = bits & np.uint64(1 << (bit_width(x.dtype) - 1))
    magnitude = bits ^ sign
    if dropped:
        last = (magnitude >> np.uint64(dropped)) & np.uint64(1)
        magnitude = magnitude + (np.uint64((1 << (dropped - 1)) - 1) + last)
        magnitude = magnitude >> np.uint64(dropped) << np.uint64(dropped)
    bias, wanted_bias = (1 << (int(format_.nexp) - 1)) - 1, (1 << (exponent_bits - 1)) - 1
    exponent = (magnitude >> np.uint64(format_.nmant)).astype(np.int64) - bias
    infinite = np.uint64(((1 << int(format_.nexp)) - 1) << int(format_.nmant))
    if exponent_bits < int(format_.nexp):
        magnitude = np.where(exponent > wanted_bias, infinite, magnitude)
        magnitude = np.where(exponent < 1 - wanted_bias, np.uint64(0), magnitude)
    rounded = (magnitude | sign).astype(f"u{x.dtype.itemsize}").view(x.dtype)
    # A format without mantissa bits has no NaN.
    return (of_type(np.where(np.isnan(x), x if mantissa_bits else np.inf, rounded), op.output),)


BITS: dict[type[Operation], Implementation] = {
    **elementwise(_KERNELS, wide=False),
    stablehlo.BitcastConvertOp: _bitcast,
    stablehlo.ReducePrecisionOp: _reduce_precision,
}
