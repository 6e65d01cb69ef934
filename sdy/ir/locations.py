"""Locations of operations and block arguments, built as MLIR builds them."""

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

from sdy.ir.building import unchecked


@irdl_attr_definition
class FileRange(ParametrizedAttribute):
    """Metadata that marks a fusion of two positions as the range `"f.py":1:2 to 3:4`.

    xDSL has no range location, and its locations may only contain its own classes.
    """

    name = "builtin.file_range"


_FILE_RANGE = FileRange()


def fused_parts(location: FusedLoc) -> tuple[Attribute, ...]:
    """Return the locations of a fusion."""
    return cast(ArrayAttr[Attribute], location.locations).data


def file_range(filename: str, line: int, column: int, end_line: int, end_column: int) -> LocationAttr:
    """Return the location of a range of a file, or of a position if the range is empty."""
    name = unchecked(StringAttr, data=filename)
    start, end = _place(name, line, column), _place(name, end_line, end_column)
    if start == end:
        return start
    return unchecked(FusedLoc, locations=unchecked(ArrayAttr, data=(start, end)), metadata=_FILE_RANGE)


def _place(filename: StringAttr, line: int, column: int) -> FileLineColLoc:
    line_number, column_number = unchecked(IntAttr, data=line), unchecked(IntAttr, data=column)
    return unchecked(FileLineColLoc, filename=filename, line=line_number, column=column_number)


def named(name: str, location: LocationAttr | NoneAttr) -> NameLoc:
    """Return a named location; an unknown child location is dropped."""
    child = NoneAttr() if isinstance(location, UnknownLoc) else location
    return unchecked(NameLoc, desc=unchecked(StringAttr, data=name), location=child)


def call_site(callee: LocationAttr, caller: LocationAttr) -> CallSiteLoc:
    """Return the location of `callee`, called at `caller`."""
    return unchecked(CallSiteLoc, callee=callee, caller=caller)


def fused(locations: Iterable[LocationAttr], metadata: Attribute) -> LocationAttr:
    """Fuse the known ones of `locations`, without duplicates; a single location without metadata stays unfused."""
    known: dict[Attribute, None] = {}
    for location in locations:
        if isinstance(location, FusedLoc) and location.metadata == metadata:
            known |= dict.fromkeys(fused_parts(location))
        elif not isinstance(location, UnknownLoc):
            known[location] = None
    if isinstance(metadata, NoneAttr) and len(known) < 2:
        return cast(LocationAttr, next(iter(known), UnknownLoc()))
    return FusedLoc(tuple(known) or (UnknownLoc(),), metadata)
