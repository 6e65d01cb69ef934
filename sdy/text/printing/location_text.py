"""Locations as MLIR makes them, and how they are printed between the parentheses of `loc(...)`."""

from collections.abc import Callable, Iterable
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class FileRange(ParametrizedAttribute):
    """What tells a range, `"f.py":1:2 to 3:4`, from a fusion of the two places where it starts and ends.

    xDSL has no location for ranges, and its locations contain none but its own.
    """

    name = "builtin.file_range"


def location_text(location: Attribute, text_of: Callable[[Attribute], str]) -> str:
    """A location in full, what it contains as `text_of` has it."""
    match location:
        case FileLineColLoc():
            return f"{text_of(location.filename)}:{location.line.data}:{location.column.data}"
        case FusedLoc(metadata=FileRange()):
            return _range_text(cast(tuple[FileLineColLoc, FileLineColLoc], fused_parts(location)), text_of)
        case NameLoc(location=NoneAttr()):
            return text_of(location.desc)
        case NameLoc():
            return f"{text_of(location.desc)}({text_of(location.location)})"
        case CallSiteLoc():
            return f"callsite({text_of(location.callee)} at {text_of(location.caller)})"
        case FusedLoc():
            metadata = "" if isinstance(location.metadata, NoneAttr) else f"<{text_of(location.metadata)}>"
            return f"fused{metadata}[{', '.join(map(text_of, fused_parts(location)))}]"
        case _:
            return "unknown"


def _range_text(ends: tuple[FileLineColLoc, FileLineColLoc], text_of: Callable[[Attribute], str]) -> str:
    start, end = ends
    end_line = "" if start.line == end.line else end.line.data
    return f"{location_text(start, text_of)} to {end_line}:{end.column.data}"


def fused_parts(location: FusedLoc) -> tuple[Attribute, ...]:
    """The locations that are fused."""
    return cast(ArrayAttr[Attribute], location.locations).data


def file_range(filename: str, line: int, column: int, end_line: int, end_column: int) -> LocationAttr:
    """A part of a file, or the place in it where it starts and ends."""
    name = StringAttr(filename)
    start = FileLineColLoc(name, IntAttr(line), IntAttr(column))
    end = FileLineColLoc(name, IntAttr(end_line), IntAttr(end_column))
    return start if start == end else FusedLoc((start, end), FileRange())


def fused(locations: Iterable[LocationAttr], metadata: Attribute) -> LocationAttr:
    """The known ones among the locations, each once, as one location; a single one is that one."""
    known: dict[Attribute, None] = {}
    for location in locations:
        if isinstance(location, FusedLoc) and location.metadata == metadata:
            known |= dict.fromkeys(fused_parts(location))
        elif not isinstance(location, UnknownLoc):
            known[location] = None
    if isinstance(metadata, NoneAttr) and len(known) < 2:
        return cast(LocationAttr, next(iter(known), UnknownLoc()))
    return FusedLoc(tuple(known) or (UnknownLoc(),), metadata)
