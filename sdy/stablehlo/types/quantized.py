"""Quantized element types of MLIR's quant dialect.

!quant.uniform<i8:f32, 5.000000e-01:3>                          per-tensor: real = 0.5 * (stored - 3)
!quant.uniform<u8<1:255>:f32:1, {2.0,3.0:4}>                    per-axis: a scale for each index of dimension 1
!quant.uniform<i8:f32:{0:2, 1:1}, {{1.0, 2.0}, {3.0:3, 4.0}}>   sub-channel: one for each 2x1 block
!quant.any<i8:f32>                                              unspecified scales
!quant.calibrated<f32<-0.5:1.5>>                                the range of the values before quantization
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, Signedness, TensorType, f64
from xdsl.ir import Attribute, Data, Dialect, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sdy.ir.open_syntax import next_token

Level = tuple[float, int]
"""A scale and a zero point."""

_STORAGE = re.compile(r"(i|si|u|ui)([0-9]+)")
_SIGNEDNESS = {"si": Signedness.SIGNED, "ui": Signedness.UNSIGNED}
_MAX_BITS = 32
_SCALES = {
    "bf16": (2.0**-133, (2 - 2**-7) * 2.0**127),
    "f16": (2.0**-24, 65504.0),
    "f32": (2.0**-149, (2 - 2**-23) * 2.0**127),
    "f64": (2.0**-1074, sys.float_info.max),
}
"""The smallest and the largest scale for each expressed type."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage type: integers from `low` to `high` in `bits` bits; `prefix` is i, si, u or ui."""

    prefix: str
    bits: int
    low: int
    high: int

    @classmethod
    def full_range(cls, prefix: str, bits: int) -> "Storage":
        """Return the storage type with the full range of its width."""
        if prefix in ("i", "si"):
            return cls(prefix, bits, -(1 << bits - 1), (1 << bits - 1) - 1)
        return cls(prefix, bits, 0, (1 << bits) - 1)

    def __str__(self) -> str:
        bounds = "" if self == Storage.full_range(self.prefix, self.bits) else f"<{self.low}:{self.high}>"
        return f"{self.prefix}{self.bits}{bounds}"


@dataclass(frozen=True, slots=True)
class UniformQuantization:
    """The parameters of uniform quantization.

    Attributes:
        storage: The storage type.
        expressed: The floating-point type of the real values.
        levels: Scales and zero points: one, or one per index of dimension `axis`, or one per block.
        axis: The quantized dimension, None unless quantized per axis.
        blocks: Pairs of a dimension and a block size along it, None unless quantized by sub-channel.
        level_shape: The shape of the array of `levels`.
    """

    storage: Storage
    expressed: Attribute
    levels: tuple[Level, ...]
    axis: int | None = None
    blocks: tuple[tuple[int, int], ...] | None = None
    level_shape: tuple[int, ...] = ()

    @property
    def bits(self) -> int:
        """The width of a stored integer in bits."""
        return self.storage.bits

    @property
    def stored(self) -> IntegerType:
        """The type of a stored integer; for both i8 and u8 the signless i8."""
        return IntegerType(self.storage.bits, _SIGNEDNESS.get(self.storage.prefix, Signedness.SIGNLESS))

    @property
    def low(self) -> int:
        """The smallest stored integer."""
        return self.storage.low

    @property
    def high(self) -> int:
        """The largest stored integer."""
        return self.storage.high


@irdl_attr_definition
class UniformQuantizedType(Data[UniformQuantization], TypeAttribute):
    """A type of integers with one scale and zero point, `!quant.uniform<i8:f32, 5.000000e-01:3>`."""

    name = "quant.uniform"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> UniformQuantization:
        """Parse the parameters in angle brackets."""
        start = parser.pos
        with parser.in_angle_brackets():
            storage = _parse_storage(parser)
            parser.parse_punctuation(":")
            expressed = _parse_expressed(parser)
            axis, blocks = _parse_quantized_dimensions(parser)
            parser.parse_punctuation(",")
            if axis is None and blocks is None:
                levels, shape = [_parse_level(parser, expressed)], ()
            else:
                levels, shape = _parse_levels(parser, expressed)
        for dimension in (axis or 0, *(dimension for dimension, _ in blocks or ())):
            if dimension < 0:
                parser.raise_error(f"illegal quantized dimension: {dimension}", start)
        for _, size in blocks or ():
            if size <= 0:
                parser.raise_error(f"illegal block size: {size}", start)
        return UniformQuantization(storage, expressed, tuple(levels), axis, blocks, shape)

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters in angle brackets."""
        printer.print_string(f"<{self.data.storage}:")
        printer.print_attribute(self.data.expressed)
        if self.data.blocks is not None:
            blocks = ", ".join(f"{dimension}:{size}" for dimension, size in self.data.blocks)
            printer.print_string(f":{{{blocks}}}")
        elif self.data.axis is not None:
            printer.print_string(f":{self.data.axis}")
        printer.print_string(", ")
        separator = "," if self.data.blocks is None else ", "
        self._print_levels(printer, self.data.level_shape, iter(self.data.levels), separator)
        printer.print_string(">")

    def _print_levels(self, printer: Printer, shape: tuple[int, ...], levels: Iterator[Level], separator: str) -> None:
        if not shape:
            scale, zero_point = next(levels)
            _print_number(printer, scale)
            printer.print_string(f":{zero_point}" if zero_point else "")
            return
        with printer.in_braces():
            for number in range(shape[0]):
                printer.print_string(separator if number else "")
                self._print_levels(printer, shape[1:], levels, separator)


@irdl_attr_definition
class AnyQuantizedType(Data[tuple[Storage, Attribute | None]], TypeAttribute):
    """`!quant.any<i8:f32>`, storage and expressed types without scales."""

    name = "quant.any"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Storage, Attribute | None]:
        """Parse the parameters in angle brackets."""
        with parser.in_angle_brackets():
            storage = _parse_storage(parser)
            return storage, _parse_expressed(parser) if parser.parse_optional_punctuation(":") else None

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters in angle brackets."""
        storage, expressed = self.data
        printer.print_string(f"<{storage}>" if expressed is None else f"<{storage}:{expressed}>")


@irdl_attr_definition
class CalibratedQuantizedType(Data[tuple[Attribute, float, float]], TypeAttribute):
    """`!quant.calibrated<f32<-0.5:1.5>>`, the range of the values before quantization."""

    name = "quant.calibrated"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Attribute, float, float]:
        """Parse the parameters in angle brackets."""
        start = parser.pos
        with parser.in_angle_brackets():
            expressed = _parse_expressed(parser)
            with parser.in_angle_brackets():
                low = _parse_float(parser)
                parser.parse_punctuation(":")
                high = _parse_float(parser)
        if high <= low:
            parser.raise_error(f"illegal min and max: ({low:e}:{high:e})", start)
        return expressed, low, high

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters in angle brackets."""
        expressed, low, high = self.data
        printer.print_string(f"<{expressed}<")
        _print_number(printer, low)
        printer.print_string(":")
        _print_number(printer, high)
        printer.print_string(">>")


def stored_type(type_: Attribute) -> Attribute:
    """Return the integer tensor type that stores a quantized tensor; other types are returned unchanged."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast(TensorType[Attribute], type_)
    element = tensor.element_type
    if not isinstance(element, UniformQuantizedType):
        return tensor
    return TensorType(element.data.stored, tensor.shape, tensor.encoding)


def _parse_storage(parser: AttrParser) -> Storage:
    start = parser.pos
    word = parser.parse_identifier()
    match = _STORAGE.fullmatch(word)
    if match is None:
        is_unsigned = word.startswith("u")
        parser.raise_error(
            "expected storage type width" if is_unsigned else "illegal quantized storage type alias", start
        )
    prefix, bits = match[1], int(match[2])
    if not 0 < bits <= _MAX_BITS:
        parser.raise_error(f"illegal storage type size: {bits}", start)
    full = Storage.full_range(prefix, bits)
    if parser.parse_optional_punctuation("<") is None:
        return full
    low_start, low = parser.pos, parser.parse_integer()
    parser.parse_punctuation(":")
    high_start, high = parser.pos, parser.parse_integer()
    parser.parse_punctuation(">")
    if low < full.low:
        parser.raise_error(f"illegal storage type minimum: {low}", low_start)
    if high > full.high:
        parser.raise_error(f"illegal storage type maximum: {high}", high_start)
    if high <= low:
        parser.raise_error(f"illegal storage min and storage max: ({low}:{high})", start)
    return Storage(prefix, bits, low, high)


def _parse_expressed(parser: AttrParser) -> Attribute:
    start = parser.pos
    expressed = parser.parse_type()
    if not isinstance(expressed, AnyFloat):
        parser.raise_error("invalid kind of type specified", start)
    return expressed


def _parse_quantized_dimensions(parser: AttrParser) -> tuple[int | None, tuple[tuple[int, int], ...] | None]:
    """Parse the quantized dimension or the blocks, if any."""
    if parser.parse_optional_punctuation(":") is None:
        return None, None

    def parse_block() -> tuple[int, int]:
        dimension = parser.parse_integer()
        parser.parse_punctuation(":")
        return dimension, parser.parse_integer()

    blocks = parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, parse_block)
    return (parser.parse_integer(), None) if blocks is None else (None, tuple(blocks))


def _parse_levels(parser: AttrParser, expressed: Attribute) -> tuple[list[Level], tuple[int, ...]]:
    """Parse nested braces of levels; return the levels and the shape of their array."""
    shapes: list[tuple[int, ...]] = []

    def parse_element() -> list[Level]:
        if next_token(parser).text == "{":
            levels, shape = _parse_levels(parser, expressed)
        else:
            levels, shape = [_parse_level(parser, expressed)], ()
        if shapes and shape != shapes[0]:
            parser.raise_error("tensor literal is invalid; ranks are not consistent between elements")
        shapes.append(shape)
        return levels

    elements = parser.parse_comma_separated_list(parser.Delimiter.BRACES, parse_element)
    if not elements:
        parser.raise_error("expected floating point literal")
    return [level for element in elements for level in element], (len(elements), *shapes[0])


def _parse_level(parser: AttrParser, expressed: Attribute) -> Level:
    start = parser.pos
    scale = _parse_float(parser)
    least, greatest = _SCALES.get(str(expressed), (0.0, sys.float_info.max))
    if not least <= scale <= greatest:
        parser.raise_error(f"scale {scale:e} out of expressed type range [{least:e}, {greatest:e}]", start)
    if scale <= 0:
        parser.raise_error(f"illegal scale: {scale:e}", start)
    return scale, parser.parse_integer() if parser.parse_optional_punctuation(":") else 0


def _parse_float(parser: AttrParser) -> float:
    start = parser.pos
    number = parser.parse_optional_number(allow_boolean=False)
    if not isinstance(number, float):
        parser.raise_error("expected floating point literal", start)
    return number


def _print_number(printer: Printer, number: float) -> None:
    printer.print_float(number, f64)


QUANT = Dialect("quant", [], [AnyQuantizedType, CalibratedQuantizedType, UniformQuantizedType])
