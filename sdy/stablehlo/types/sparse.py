"""Sparse encodings of MLIR's sparse_tensor dialect.

    #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>     compressed sparse rows

A level stores a dimension, its blocks (`d0 floordiv 2`) or the indices within a block (`d0 mod 2`).
"""

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import TensorEncoding
from sdy.text.printing.aliases import register_alias_prefix

FORMATS = ("dense", "batch", "compressed", "loose_compressed", "singleton", "structured")
PROPERTIES = ("nonunique", "nonordered", "soa")
WIDTHS = (0, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Level:
    """A storage level: an expression of a dimension and its format."""

    dimension: int
    part: str
    """Empty for the full dimension, otherwise for example `floordiv 2`."""

    format: str
    properties: tuple[str, ...] = ()
    """Keywords in the order of PROPERTIES; for a structured level its two integers."""

    def __str__(self) -> str:
        stored = f"d{self.dimension}{self.part and ' '}{self.part}"
        brackets = "[]" if self.format == "structured" else "()"
        return f"{stored} : {self.format}{', '.join(self.properties).join(brackets) if self.properties else ''}"


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The storage levels of a tensor, and the widths of positions and coordinates in bits, 0 for `index`."""

    rank: int
    levels: tuple[Level, ...]
    position_width: int = 0
    coordinate_width: int = 0


@irdl_attr_definition
class SparseEncodingAttr(Data[Sparsity], TensorEncoding):
    """The storage of a sparse tensor, `#sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>`."""

    name = "sparse_tensor.encoding"

    def verify_encoding(self, tensor: TensorType[Attribute]) -> None:
        """Raise VerifyException if the tensor has another rank."""
        rank = tensor.get_num_dims()
        if rank != self.data.rank:
            raise VerifyException(
                f"dimension-rank mismatch between encoding and tensor shape: {self.data.rank} != {rank}"
            )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sparsity:
        """Parse the parameters in angle brackets; the dimensions may have any names."""
        with parser.in_angle_brackets(), parser.in_braces():
            parser.parse_keyword("map")
            parser.parse_punctuation("=")
            names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
            parser.parse_punctuation("->")
            levels = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_level(parser, names))
            widths = {"posWidth": 0, "crdWidth": 0}
            while parser.parse_optional_punctuation(","):
                key = parser.expect(lambda: parser.parse_optional_keyword_in(widths), "expected posWidth or crdWidth")
                parser.parse_punctuation("=")
                start = parser.pos
                widths[key] = parser.parse_integer()
                if widths[key] not in WIDTHS:
                    parser.raise_error(f"expected one of {', '.join(map(str, WIDTHS))}", start, parser.pos)
        return Sparsity(len(names), tuple(levels), *widths.values())

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters in angle brackets."""
        sparsity = self.data
        dimensions = ", ".join(f"d{number}" for number in range(sparsity.rank))
        widths = (("posWidth", sparsity.position_width), ("crdWidth", sparsity.coordinate_width))
        width_entries = "".join(f", {key} = {width}" for key, width in widths if width)
        printer.print_string(f"<{{ map = ({dimensions}) -> ({', '.join(map(str, sparsity.levels))}){width_entries} }}>")


def _parse_level(parser: AttrParser, names: list[str]) -> Level:
    dimension = parser.expect(lambda: parser.parse_optional_keyword_in(names), "expected a dimension of the tensor")
    operator = parser.parse_optional_keyword_in(("floordiv", "mod"))
    part = "" if operator is None else f"{operator} {parser.parse_integer(allow_negative=False)}"
    parser.parse_punctuation(":")
    known = f"expected one of {', '.join(FORMATS)}"
    form = parser.expect(lambda: parser.parse_optional_keyword_in(FORMATS), known)
    properties: list[str] = []
    if form == "structured":
        properties += map(str, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
    elif parser.parse_optional_punctuation("(") is not None:
        properties += parser.parse_comma_separated_list(
            parser.Delimiter.NONE,
            lambda: parser.expect(
                lambda: parser.parse_optional_keyword_in(PROPERTIES), f"expected one of {', '.join(PROPERTIES)}"
            ),
        )
        parser.parse_punctuation(")")
        properties.sort(key=PROPERTIES.index)
    return Level(names.index(dimension), part, form, tuple(properties))


register_alias_prefix(SparseEncodingAttr, "sparse")

SPARSE_TENSOR = Dialect("sparse_tensor", [], [SparseEncodingAttr])
