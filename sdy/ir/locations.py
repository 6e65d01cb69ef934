"""Locations of operations and block arguments as MLIR makes them."""

from collections.abc import Iterable
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

from sdy.ir.unchecked import unchecked


@irdl_attr_definition
class FileRange(ParametrizedAttribute):
    """What tells a range, `"f.py":1:2 to 3:4`, from a fusion of the two places where it starts and ends.

    xDSL has no location for ranges, and its locations contain none but its own.
    """

    name = "builtin.file_range"


_FILE_RANGE = FileRange()


def fused_parts(location: FusedLoc) -> tuple[Attribute, ...]:
    """The locations that are fused."""
    return cast(ArrayAttr[Attribute], location.locations).data


def file_range(filename: str, line: int, column: int, end_line: int, end_column: int) -> LocationAttr:
    """A part of a file, or the place in it where it starts and ends."""
    name = unchecked(StringAttr, data=filename)
    start, end = _place(name, line, column), _place(name, end_line, end_column)
    if start == end:
        return start
    return unchecked(FusedLoc, locations=unchecked(ArrayAttr, data=(start, end)), metadata=_FILE_RANGE)


def _place(filename: StringAttr, line: int, column: int) -> FileLineColLoc:
    line_number, column_number = unchecked(IntAttr, data=line), unchecked(IntAttr, data=column)
    return unchecked(FileLineColLoc, filename=filename, line=line_number, column=column_number)


def named(name: str, location: LocationAttr | NoneAttr) -> NameLoc:
    """A location that has a name, which says nothing more of one that is not known."""
    child = NoneAttr() if isinstance(location, UnknownLoc) else location
    return unchecked(NameLoc, desc=unchecked(StringAttr, data=name), location=child)


def call_site(callee: LocationAttr, caller: LocationAttr) -> CallSiteLoc:
    """A location in a function, and where that is called."""
    return unchecked(CallSiteLoc, callee=callee, caller=caller)


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
