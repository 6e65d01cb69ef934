"""Call sites of Python functions, read from the call stacks in JAX's locations."""

from collections.abc import Iterator
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr, ModuleOp, NameLoc
from xdsl.ir import Attribute

from sdy.diagnostics import Location, location_of
from sdy.ir.walking import operations


class Callers:
    """Call sites in a program, without the frames that all operations share, such as the line that lowers it."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module

    def of(self, location: LocationAttr) -> Location | None:
        """Return where the function that contains `location` is called, or None if that is unknown."""
        place, *callers = [*_frames(location)] or [None]
        caller = next((each for each in callers if each != place), None)
        return None if caller in self._common_frames else caller

    @cached_property
    def _common_frames(self) -> set[Location]:
        common: set[Location] | None = None
        for location in {op.location for op in operations(self._module)}:
            frames = {*_frames(location)}
            if frames:
                common = frames if common is None else common & frames
        return common or set()


def _frames(location: Attribute) -> Iterator[Location]:
    """Yield the frames of a call stack, the innermost first."""
    while isinstance(location, NameLoc | CallSiteLoc):
        if isinstance(location, CallSiteLoc):
            yield from _frames(location.callee)
            location = location.caller
        else:
            location = location.location
    place = location_of(cast(LocationAttr, location))
    if place is not None:
        yield place
