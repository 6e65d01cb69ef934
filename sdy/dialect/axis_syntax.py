"""Syntax of axes and symbols: `"x"`, `"x":(2)4`, `{"x", "y"}`, `@mesh`; short text of shardings for reports."""

import re
from collections.abc import Iterable

from xdsl.parser import AttrParser

from sdy.axes import AxisRef, quoted
from sdy.dialect.field import Field
from sdy.parse_errors import parse_error
from sdy.sharding import TensorSharding

_LARGEST_INT = 2**63 - 1
_BARE_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def symbol_text(name: str) -> str:
    """Format `@name`, quoted where MLIR requires it."""
    return f"@{name}" if _BARE_SYMBOL.fullmatch(name) else f"@{quoted(name)}"


def parse_int(parser: AttrParser) -> int:
    """Parse a 64-bit integer."""
    start = parser.pos
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is None:
        if (boolean := parser.parse_optional_boolean()) is not None:
            return -boolean  # a boolean is an integer of one bit, its sign: true is -1
        raise parse_error(parser, "expected integer value")
    if not -_LARGEST_INT - 1 <= number <= _LARGEST_INT:
        raise parse_error(parser, "integer value too large", start)
    return number


def parse_axis_name(parser: AttrParser) -> str:
    """Parse a quoted name."""
    name = parser.parse_optional_str_literal()
    if name is None:
        raise parse_error(parser, "expected string")
    return name


def parse_word(parser: AttrParser) -> str:
    """Parse a bare identifier."""
    word = parser.parse_optional_identifier()
    if word is None:
        raise parse_error(parser, "expected valid keyword")
    return word


def parse_keyword(parser: AttrParser, keyword: str) -> None:
    """Parse the keyword `keyword`."""
    if parser.parse_optional_keyword(keyword) is None:
        raise parse_error(parser, f"expected '{keyword}'")


_PRE_SIZE = Field("SubAxisInfo", "pre_size", "int64_t", parse_int)
_SIZE = Field("SubAxisInfo", "size", "int64_t", parse_int)


def parse_sub_axis(parser: AttrParser) -> tuple[int, int]:
    """Parse the sub-axis part of an axis, `(pre_size)size`."""
    parser.parse_punctuation("(")
    pre_size = _PRE_SIZE.read(parser)
    parser.parse_punctuation(")")
    return pre_size, _SIZE.read(parser)


def sub_axis_text(sub_axis: tuple[int, int]) -> str:
    """Format the sub-axis part of an axis, `(pre_size)size`."""
    return f"({sub_axis[0]}){sub_axis[1]}"


_AXIS_NAME = Field("AxisRef", "name", "::llvm::StringRef", parse_axis_name)
_SUB_AXIS = Field("AxisRef", "sub_axis_info", "SubAxisInfoAttr", parse_sub_axis, "sdy.sub_axis_info")


def parse_axis(parser: AttrParser) -> AxisRef:
    """Parse `"x"` or `"x":(pre_size)size`."""
    name = _AXIS_NAME.read(parser)
    return AxisRef(name, *_SUB_AXIS.read(parser)) if parser.parse_optional_punctuation(":") else AxisRef(name)


_AXES = Field("AxisRefList", "value", "::llvm::ArrayRef<AxisRefAttr>", parse_axis, "sdy.axis_ref")


def parse_axes(parser: AttrParser) -> tuple[AxisRef, ...]:
    """Parse `{"x", "y":(1)2}`."""
    parser.parse_punctuation("{")
    return _AXES.read_until(parser, "}")


def axes_text(axes: Iterable[AxisRef]) -> str:
    """Format `{"x", "y":(1)2}`."""
    return f"{{{', '.join(map(str, axes))}}}"


_AXIS_LISTS = Field("ListOfAxisRefLists", "value", "::llvm::ArrayRef<AxisRefListAttr>", parse_axes, "sdy.axis_ref_list")


def parse_axis_lists(parser: AttrParser) -> tuple[tuple[AxisRef, ...], ...]:
    """Parse `[{"x"}, {}]`."""
    parser.parse_punctuation("[")
    return _AXIS_LISTS.read_until(parser, "]")


def axis_lists_text(lists: Iterable[Iterable[AxisRef]]) -> str:
    """Format `[{"x"}, {}]`."""
    return f"[{', '.join(map(axes_text, lists))}]"


def _parse_string_attribute(parser: AttrParser) -> str:
    name = parser.parse_optional_str_literal()
    if name is None:
        start = parser.pos
        parser.parse_attribute()
        raise parse_error(parser, "invalid kind of attribute specified", start)
    if parser.parse_optional_punctuation(":") is not None:
        parser.parse_type()
    return name


_NAMES = Field("ManualAxes", "value", "::llvm::ArrayRef<StringAttr>", _parse_string_attribute)


def parse_axis_names(parser: AttrParser) -> tuple[str, ...]:
    """Parse `{"x", "y"}`, without sub-axes."""
    parser.parse_punctuation("{")
    return _NAMES.read_until(parser, "}")


def axis_names_text(names: Iterable[str]) -> str:
    """Format `{"x", "y"}`."""
    return f"{{{', '.join(map(quoted, names))}}}"


def format_dims(sharding: TensorSharding | None) -> str:
    """Format the axes of each dimension, or "replicated"."""
    if sharding is None or sharding.is_fully_replicated:
        return "replicated"
    return f"[{', '.join(axes_text(dim.axes) for dim in sharding.dims)}]"
