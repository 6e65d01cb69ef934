"""Call sites of Python functions, read from the call stacks in JAX's locations."""

from collections.abc import Iterator
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, LocationAttr, ModuleOp, NameLoc
from xdsl.ir import Attribute

from sdy.diagnostics import Location, is_library, is_own, location_of
from sdy.ir.locations import fused_parts
from sdy.ir.walking import operations


class Callers:
    """Call sites in a program: lines of a person's files."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module

    def of(self, location: LocationAttr) -> list[Location]:
        """Return where the function that contains `location` is called, and where its file is called from.

        A frame that all operations share, such as the line that lowers the program, is listed only as the latter.
        """
        place = location_of(location)
        frames = [frame for frame in _frames(location) if not is_library(frame.filename)]
        if place is None or place not in frames:
            return []
        callers = [frame for frame in frames[frames.index(place) + 1 :] if frame != place]
        nearest = [frame for frame in callers[:1] if frame not in self._common_frames]
        other_files = [frame for frame in callers if frame.filename != place.filename]
        return [*dict.fromkeys((*nearest, *other_files[:1]))]

    @cached_property
    def _common_frames(self) -> set[Location]:
        common: set[Location] | None = None
        for location in {op.location for op in operations(self._module)}:
            frames = {*_frames(location)}
            if frames:
                common = frames if common is None else common & frames
        return common or set()


def library_line(location: LocationAttr) -> Location | None:
    """Return the innermost line, if it is one of a library that the line of a person's file calls."""
    if isinstance(location, FileLineColLoc):  # the only frame: most operations of a text have one
        return None
    innermost = next((frame for frame in _frames(location) if not is_own(frame.filename)), None)
    return innermost if innermost != location_of(location) else None


def _frames(location: Attribute) -> Iterator[Location]:
    """Yield the frames of a call stack, the innermost first."""
    match location:
        case CallSiteLoc():
            yield from _frames(location.callee)
            yield from _frames(location.caller)
        case NameLoc():
            yield from _frames(location.location)
        case FusedLoc() if parts := fused_parts(location):
            yield from _frames(parts[0])
        case _:
            place = location_of(cast(LocationAttr, location))
            if place is not None:
                yield place
