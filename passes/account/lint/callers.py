"""Where functions of Python are called, as jax tells it of each operation."""

from collections.abc import Iterator
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr, ModuleOp, NameLoc
from xdsl.ir import Attribute

from sdy.diagnostics import Location, location_of
from sdy.ir.walking import operations


class Callers:
    """The calls in a program. What all of it is called from, such as the line that lowers it, is none of them."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module

    def of(self, location: LocationAttr) -> Location | None:
        """Where the function is called in which `location` is; None where that is not known."""
        place, *callers = [*_frames(location)] or [None]
        caller = next((each for each in callers if each != place), None)
        return None if caller in self._around_all else caller

    @cached_property
    def _around_all(self) -> set[Location]:
        around: set[Location] | None = None
        for location in {op.location for op in operations(self._module)}:
            frames = {*_frames(location)}
            if frames:
                around = frames if around is None else around & frames
        return around or set()


def _frames(location: Attribute) -> Iterator[Location]:
    """The places of a call stack, the innermost first."""
    while isinstance(location, NameLoc | CallSiteLoc):
        if isinstance(location, CallSiteLoc):
            yield from _frames(location.callee)
            location = location.caller
        else:
            location = location.location
    place = location_of(cast(LocationAttr, location))
    if place is not None:
        yield place
