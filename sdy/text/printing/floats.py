"""Floating-point numbers as MLIR prints them: `1.000000e+00`, `9.99999997E-7`, `0xFF800000`.

A number is printed with six digits if these round-trip; otherwise with as many digits as its type needs, as LLVM's
APFloat does; otherwise, and for infinities and NaNs, as its bits.
"""

import math
from functools import lru_cache

from xdsl.dialects.builtin import AnyFloat

_SHORT_DIGITS = 6
_LONGEST_PADDING = 3
"""The most zeros between the digits and the decimal point; beyond that the number is printed with an exponent."""

_SIGNIFICAND_BITS = {
    "f16": 11,
    "bf16": 8,
    "f32": 24,
    "tf32": 11,
    "f64": 53,
    "f8E5M2": 3,
    "f8E5M2FNUZ": 3,
    "f8E4M3": 4,
    "f8E4M3FN": 4,
    "f8E4M3FNUZ": 4,
    "f8E4M3B11FNUZ": 4,
    "f8E3M4": 5,
    "f8E8M0FNU": 1,
    "f6E2M3FN": 4,
    "f6E3M2FN": 3,
    "f4E2M1FN": 2,
}


@lru_cache(maxsize=4096)
def float_text(value: float, negative: bool, of: AnyFloat) -> str:
    """Return the text of a number of the type `of`; `negative` distinguishes -0.0 from 0.0."""
    if math.isfinite(value):
        text = _short_text(value, negative)
        if _read(text, of) == value:
            return text
        text = _long_text(value, _SIGNIFICAND_BITS[str(of)])
        if "." in text:
            return text
    return bits_text(value, of)


def bits_text(value: float, of: AnyFloat) -> str:
    """Return the bits of `value` in hexadecimal."""
    return f"0x{int.from_bytes(of.pack((value,)), 'little'):X}"


def _read(text: str, of: AnyFloat) -> float:
    return of.unpack(of.pack((float(text),)), 1)[0]


def _short_text(value: float, negative: bool) -> str:
    digits, exponent = _decimal(abs(value), _SHORT_DIGITS) if value else ("0", 0)
    return f"{'-' if negative else ''}{digits[0]}.{digits[1:]:0<{_SHORT_DIGITS}}e{exponent + len(digits) - 1:+03d}"


def _long_text(value: float, significand_bits: int) -> str:
    sign = "-" if value < 0 else ""
    precision = 2 + significand_bits * 59 // 196
    digits, exponent = _decimal(abs(value), precision)
    count = len(digits)
    leading = exponent + count - 1  # the power of ten of the first digit
    if exponent >= 0:
        scientific = exponent > _LONGEST_PADDING or count + exponent > precision
    else:
        scientific = leading < -_LONGEST_PADDING
    if scientific:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{leading:+d}"
    if exponent >= 0:
        return sign + digits + "0" * exponent
    if leading >= 0:
        return f"{sign}{digits[: leading + 1]}.{digits[leading + 1 :]}"
    return f"{sign}0.{'0' * (-leading - 1)}{digits}"


def _decimal(value: float, precision: int) -> tuple[str, int]:
    """Return at most `precision` significant digits of `value` > 0, without trailing zeros, and the power of ten.

    As in APFloat, digits are dropped in two steps: the surely surplus ones are truncated, then the rest is rounded half
    up.
    """
    significand, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    significand *= 5**-exponent
    bits_needed = (precision * 196 + 58) // 59
    surplus = (significand.bit_length() - bits_needed) * 59 // 196
    if surplus > 0:
        significand //= 10**surplus
        exponent += surplus
    digits = str(significand)
    if (surplus := len(digits) - precision) > 0:
        digits = str(int(digits[:precision]) + (digits[precision] >= "5"))
        exponent += surplus
    stripped = digits.rstrip("0")
    return stripped, exponent + len(digits) - len(stripped)
