"""Quantized element types: integers that stand for real numbers, as MLIR's quant dialect writes them.

!quant.uniform<i8:f32, 5.000000e-01:3>            real = 0.5 * (stored - 3)
!quant.uniform<u8<1:255>:f32:1, {2.0, 3.0:4}>     a scale and a zero point for each place along dimension 1
"""

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, Data, Dialect, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@dataclass(frozen=True, slots=True)
class UniformQuantization:
    """How the stored integers of `bits` bits, from `low` to `high`, are read as numbers of the `expressed` type.

    `levels` are scales and zero points: one, or where `axis` is given one for each place along that dimension.
    """

    bits: int
    is_signed: bool
    low: int
    high: int
    expressed: Attribute
    levels: tuple[tuple[float, int], ...]
    axis: int | None = None

    @property
    def has_whole_range(self) -> bool:
        """Whether every integer of the storage type may be stored."""
        return (self.low, self.high) == storage_range(self.bits, self.is_signed)


def storage_range(bits: int, is_signed: bool) -> tuple[int, int]:
    """The least and the greatest integer of `bits` bits."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)


@irdl_attr_definition
class UniformQuantizedType(Data[UniformQuantization], TypeAttribute):
    """`!quant.uniform<i8:f32, 5.000000e-01:3>`."""

    name = "quant.uniform"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> UniformQuantization:
        """Read what stands between the angle brackets."""
        with parser.in_angle_brackets():
            start = parser.pos
            storage = parser.parse_identifier("expected a storage type such as i8 or u8")
            sign, bits = storage[:1], storage[1:]
            if sign not in ("i", "u") or not bits.isdecimal() or not 1 <= int(bits) <= 32:
                parser.raise_error("a storage type is i or u with 1 to 32 bits", start, parser.pos)
            low, high = storage_range(int(bits), sign == "i")
            if parser.parse_optional_punctuation("<"):
                low = parser.parse_integer()
                parser.parse_punctuation(":")
                high = parser.parse_integer()
                parser.parse_punctuation(">")
            parser.parse_punctuation(":")
            start = parser.pos
            expressed = parser.parse_type()
            if not isinstance(expressed, AnyFloat):
                parser.raise_error("the expressed type is a floating-point type", start, parser.pos)
            axis = parser.parse_integer(allow_negative=False) if parser.parse_optional_punctuation(":") else None
            parser.parse_punctuation(",")
            if axis is None:
                levels = [_parse_level(parser)]
            else:
                levels = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_level(parser))
        return UniformQuantization(int(bits), sign == "i", low, high, expressed, tuple(levels), axis)

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands between the angle brackets, and these."""
        quantization = self.data
        bounds = "" if quantization.has_whole_range else f"<{quantization.low}:{quantization.high}>"
        levels = ", ".join(f"{scale:e}{f':{zero}' if zero else ''}" for scale, zero in quantization.levels)
        places = f", {levels}" if quantization.axis is None else f":{quantization.axis}, {{{levels}}}"
        sign = "i" if quantization.is_signed else "u"
        printer.print_string(f"<{sign}{quantization.bits}{bounds}:{quantization.expressed}{places}>")


def stored_type(type_: Attribute) -> Attribute:
    """The type of the integers that a tensor of quantized elements stores; any other type as it is."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast(TensorType[Attribute], type_)
    element = tensor.element_type
    if not isinstance(element, UniformQuantizedType):
        return tensor
    signedness = Signedness.SIGNLESS if element.data.is_signed else Signedness.UNSIGNED
    return TensorType(IntegerType(element.data.bits, signedness), tensor.shape, tensor.encoding)


def _parse_level(parser: AttrParser) -> tuple[float, int]:
    scale = float(parser.parse_number(allow_boolean=False))
    zero_point = parser.parse_integer() if parser.parse_optional_punctuation(":") else 0
    return scale, zero_point


QUANT = Dialect("quant", [], [UniformQuantizedType])
