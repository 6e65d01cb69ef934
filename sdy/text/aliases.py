"""The short names of locations: `#loc3 = loc("f.py":10:7)`.

MLIR numbers the locations of a program from those that contain no other upwards, in the order in which the text meets
them. Those that block arguments need stand before the program, all others after it.
"""

from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    UnknownLoc,
)


@dataclass
class _Alias:
    depth: int
    deferred: bool
    name: str = ""


@dataclass
class LocationAliases:
    """The aliases of the locations that a text has met."""

    _aliases: dict[LocationAttr, _Alias] = field(default_factory=dict[LocationAttr, _Alias])

    def meet(self, location: LocationAttr, *, deferred: bool) -> int:
        """Note that the text needs a location, after the program if `deferred`. Returns how deep it nests others."""
        alias = self._aliases.setdefault(location, _Alias(-1, True))
        if alias.depth < 0 or (alias.deferred and not deferred):
            alias.deferred = deferred
            alias.depth = max((self.meet(part, deferred=deferred) + 1 for part in _parts(location)), default=0)
        return alias.depth

    def number(self) -> None:
        """Give the aliases their names, once all locations have been met."""
        for number, alias in enumerate(sorted(self._aliases.values(), key=lambda alias: alias.depth)):
            alias.name = f"#loc{number or ''}"

    def reference(self, location: LocationAttr) -> str:
        """What stands for a location between the parentheses of `loc(...)`: its alias, or itself if it has none."""
        alias = self._aliases.get(location)
        return self.spelled(location) if alias is None else alias.name

    def spelled(self, location: LocationAttr) -> str:
        """A location in full, its parts by their aliases."""
        match location:
            case FileLineColLoc():
                return f"{location.filename}:{location.line.data}:{location.column.data}"
            case NameLoc():
                child = location.location
                return f"{location.desc}" if isinstance(child, NoneAttr) else f"{location.desc}({self._part(child)})"
            case CallSiteLoc():
                return f"callsite({self._part(location.callee)} at {self._part(location.caller)})"
            case FusedLoc():
                metadata = "" if isinstance(location.metadata, NoneAttr) else f"<{location.metadata}>"
                return f"fused{metadata}[{', '.join(map(self.reference, _parts(location)))}]"
            case UnknownLoc():
                return "unknown"

    def _part(self, location: object) -> str:
        return self.reference(cast(LocationAttr, location))

    def definitions(self, *, deferred: bool) -> str:
        """The lines that define the aliases: those that stand after the program if `deferred`, or before it."""
        chosen = [(alias, location) for location, alias in self._aliases.items() if alias.deferred is deferred]
        chosen.sort(key=lambda pair: pair[0].depth)
        return "".join(f"{alias.name} = loc({self.spelled(location)})\n" for alias, location in chosen)


def _parts(location: LocationAttr) -> tuple[LocationAttr, ...]:
    match location:
        case NameLoc():
            child = location.location
            return () if isinstance(child, NoneAttr) else (cast(LocationAttr, child),)
        case CallSiteLoc():
            return cast(LocationAttr, location.callee), cast(LocationAttr, location.caller)
        case FusedLoc():
            return cast(ArrayAttr[LocationAttr], location.locations).data
        case _:
            return ()
