"""The text of locations, between the parentheses of `loc(...)`."""

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc, NoneAttr
from xdsl.ir import Attribute

from sdy.ir.locations import FileRange, fused_parts

_TextOf = Callable[[Attribute], str]


def location_text(location: Attribute, text_of: _TextOf) -> str:
    """Return the text of a location, with its parts printed by `text_of`."""
    text = _TEXTS.get(type(location))
    return "unknown" if text is None else text(location, text_of)


def _place_text(place: FileLineColLoc, text_of: _TextOf) -> str:
    return f"{text_of(place.filename)}:{place.line.data}:{place.column.data}"


def _name_text(name: NameLoc, text_of: _TextOf) -> str:
    place = "" if isinstance(name.location, NoneAttr) else f"({text_of(name.location)})"
    return f"{text_of(name.desc)}{place}"


def _call_text(call: CallSiteLoc, text_of: _TextOf) -> str:
    return f"callsite({text_of(call.callee)} at {text_of(call.caller)})"


def _fusion_text(fusion: FusedLoc, text_of: _TextOf) -> str:
    if isinstance(fusion.metadata, FileRange):
        start, end = cast(tuple[FileLineColLoc, FileLineColLoc], fused_parts(fusion))
        end_line = "" if start.line == end.line else end.line.data
        return f"{_place_text(start, text_of)} to {end_line}:{end.column.data}"
    metadata = "" if isinstance(fusion.metadata, NoneAttr) else f"<{text_of(fusion.metadata)}>"
    return f"fused{metadata}[{', '.join(map(text_of, fused_parts(fusion)))}]"


_TEXTS: dict[type[Attribute], Callable[[Any, _TextOf], str]] = {
    CallSiteLoc: _call_text,
    FileLineColLoc: _place_text,
    FusedLoc: _fusion_text,
    NameLoc: _name_text,
}
"""Printers by location class, except for unknown locations."""
