"""The text of axes and of symbols: `"x"`, `"x":(2)4`, `{"x", "y"}`, `@mesh`."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from xdsl.parser import AttrParser

from sdy.axes import AxisRef, quoted

T = TypeVar("T")

_LARGEST_INT = 2**63 - 1
_BARE_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def symbol_text(name: str) -> str:
    """`@name`, quoted where MLIR needs it."""
    return f"@{name}" if _BARE_SYMBOL.fullmatch(name) else f"@{quoted(name)}"


def parse_list(parser: AttrParser, close: str, parse_element: Callable[[AttrParser], T]) -> tuple[T, ...]:
    """Elements and commas up to the punctuation `close`, whose opening has been read."""
    if parser.parse_optional_characters(close):
        return ()
    elements = [parse_element(parser)]
    while not parser.parse_optional_characters(close):
        if not parser.parse_optional_punctuation(","):
            parser.raise_error(f"expected '{close}'")
        elements.append(parse_element(parser))
    return tuple(elements)


def parse_int(parser: AttrParser) -> int:
    """An integer of 64 bits."""
    start = parser.pos
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is None:
        parser.raise_error("expected integer value")
    if not -_LARGEST_INT - 1 <= number <= _LARGEST_INT:
        parser.raise_error("integer value too large", start, parser.pos)
    return number


def parse_axis_name(parser: AttrParser) -> str:
    """A quoted name."""
    name = parser.parse_optional_str_literal()
    if name is None:
        parser.raise_error("expected string")
    return name


def parse_sub_axis(parser: AttrParser) -> tuple[int, int]:
    """`(pre_size)size`."""
    parser.parse_punctuation("(")
    pre_size = parse_int(parser)
    parser.parse_punctuation(")")
    return pre_size, parse_int(parser)


def sub_axis_text(sub_axis: tuple[int, int]) -> str:
    """`(pre_size)size`."""
    return f"({sub_axis[0]}){sub_axis[1]}"


def parse_axis(parser: AttrParser) -> AxisRef:
    """`"x"` or `"x":(pre_size)size`."""
    name = parse_axis_name(parser)
    return AxisRef(name, *parse_sub_axis(parser)) if parser.parse_optional_punctuation(":") else AxisRef(name)


def parse_axes(parser: AttrParser) -> tuple[AxisRef, ...]:
    """`{"x", "y":(1)2}`."""
    parser.parse_punctuation("{")
    return parse_list(parser, "}", parse_axis)


def axes_text(axes: Iterable[AxisRef]) -> str:
    """`{"x", "y":(1)2}`."""
    return f"{{{', '.join(map(str, axes))}}}"


def parse_axis_lists(parser: AttrParser) -> tuple[tuple[AxisRef, ...], ...]:
    """`[{"x"}, {}]`."""
    parser.parse_punctuation("[")
    return parse_list(parser, "]", parse_axes)


def axis_lists_text(lists: Iterable[Iterable[AxisRef]]) -> str:
    """`[{"x"}, {}]`."""
    return f"[{', '.join(map(axes_text, lists))}]"


def parse_axis_names(parser: AttrParser) -> tuple[str, ...]:
    """`{"x", "y"}`, of whole axes only."""
    parser.parse_punctuation("{")
    return parse_list(parser, "}", parse_axis_name)


def axis_names_text(names: Iterable[str]) -> str:
    """`{"x", "y"}`."""
    return f"{{{', '.join(map(quoted, names))}}}"
