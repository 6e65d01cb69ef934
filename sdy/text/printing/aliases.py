"""The short names of what a text says again and again: `#map = affine_map<(d0) -> (d0)>`, `#loc3 = loc("f.py":10:7)`.

MLIR names affine maps and sets, locations, and tuples of many types. It numbers them from those that contain no other
upwards, types before attributes, in the order in which the text meets them. Locations that only operations need stand
after the program, everything else before it. So a name is known when all of the text is: until then, a mark is there.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    CallSiteLoc,
    DictionaryAttr,
    FileLineColLoc,
    FusedLoc,
    IntegerAttr,
    NameLoc,
    NoneAttr,
    TensorType,
    TupleType,
    UnknownLoc,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute

from sdy.ir.locations import FileRange, fused_parts

_WORDS: dict[type[Attribute], str] = {
    AffineMapAttr: "map",
    AffineSetAttr: "set",
    CallSiteLoc: "loc",
    FileLineColLoc: "loc",
    FusedLoc: "loc",
    NameLoc: "loc",
    UnknownLoc: "loc",
    TupleType: "tuple",
}

_MARK = re.compile("\0(\\d+)\0")
"""What stands for the alias of this number; no text has the character 0, which is escaped in strings."""

_MOST_UNNAMED_TYPES = 16
"""A tuple of more types than this gets a name."""


def give_alias(kind: type[Attribute], word: str) -> None:
    """Let attributes of a dialect have aliases that begin with `word`."""
    _WORDS[kind] = word


def _word(attribute: Attribute) -> str | None:
    """What the alias of an attribute begins with; None where it has none."""
    word = _WORDS.get(type(attribute))
    if word is not None and isinstance(attribute, TupleType) and len(attribute.types) <= _MOST_UNNAMED_TYPES:
        return None
    return word


@dataclass
class _Alias:
    attribute: Attribute
    word: str
    mark: str
    deferred: bool
    depth: int = 1
    name: str = ""

    @property
    def is_type(self) -> bool:
        return isinstance(self.attribute, TypeAttribute)

    @property
    def order(self) -> tuple[int, bool, str]:
        return self.depth, not self.is_type, self.word


@dataclass
class Aliases:
    """The aliases of what has been printed. Unless they are `used`, everything is printed where it stands."""

    used: bool = False

    _aliases: dict[Attribute, _Alias] = field(default_factory=dict[Attribute, _Alias])
    _found: dict[int, tuple[Attribute, _Alias]] = field(default_factory=dict[int, tuple[Attribute, _Alias]])
    """The same by the identity of attributes: to hash a location takes long, as it hashes those that it is made of."""
    _in_order: list[_Alias] = field(default_factory=list[_Alias])
    """In the order in which they were met."""
    _met: dict[int, tuple[Attribute, int]] = field(default_factory=dict[int, tuple[Attribute, int]])
    """By the identity of attributes without an alias whose parts have been met: how deep they nest aliases."""

    def meet(self, attribute: Attribute, *, deferred: bool = False) -> int:
        """Note that the text needs an attribute, after the program if `deferred`. Returns how deep it nests aliases."""
        if not self.used:
            return 0
        word = _word(attribute)
        if word is None:
            met = self._met.get(id(attribute))
            if met is not None:
                return met[1]
            deepest = self._meet_parts(attribute, deferred)
            depth = deepest + 1 if deepest else 0
            if not deferred:
                self._met[id(attribute)] = attribute, depth
            return depth
        alias = self._find(attribute)
        if alias is None:
            alias = self._aliases[attribute] = _Alias(attribute, word, f"\0{len(self._in_order)}\0", deferred)
            self._in_order.append(alias)
        elif deferred or not alias.deferred:
            return alias.depth
        alias.deferred = deferred
        alias.depth = self._meet_parts(attribute, deferred) + 1
        return alias.depth

    def _meet_parts(self, attribute: Attribute, deferred: bool) -> int:
        parts = _parts(attribute)
        return max([self.meet(part, deferred=deferred) for part in parts]) if parts else 0

    def mark(self, attribute: Attribute) -> str:
        """What to print instead of an attribute that has been met; empty where it is to be printed itself."""
        if not self.used or _word(attribute) is None:
            return ""
        alias = self._find(attribute)
        return "" if alias is None else alias.mark

    def _find(self, attribute: Attribute) -> _Alias | None:
        """The alias of an attribute that has been met."""
        found = self._found.get(id(attribute))
        if found is not None:
            return found[1]
        alias = self._aliases.get(attribute)
        if alias is not None:
            self._found[id(attribute)] = attribute, alias
        return alias

    def define(self, program: str, in_full: Callable[[Attribute], str]) -> str:
        """A program with names in the place of the marks, among the definitions of what these stand for."""
        if not self.used:
            return program
        # To print one in full may meet others, which are then defined as well.
        definitions = [(alias, in_full(alias.attribute)) for alias in self._in_order]
        definitions.sort(key=lambda definition: definition[0].order)
        count = Counter[str]()
        for alias, _ in definitions:
            alias.name = f"{'!' if alias.is_type else '#'}{alias.word}{count[alias.word] or ''}"
            count[alias.word] += 1
        before, after = (
            "".join([f"{alias.name} = {text}\n" for alias, text in definitions if alias.deferred is deferred])
            for deferred in (False, True)
        )
        return _MARK.sub(lambda mark: self._in_order[int(mark[1])].name, f"{before}{program}{after}")


def _nothing(attribute: Attribute) -> Sequence[Attribute]:
    return ()


def _parameters(attribute: Any) -> Sequence[Attribute]:
    return attribute.parameters


def _values(dictionary: DictionaryAttr) -> Sequence[Attribute]:
    return [value for _, value in sorted(dictionary.data.items())]


def _named_location(location: NameLoc) -> Sequence[Attribute]:
    return () if isinstance(location.location, NoneAttr) else (location.location,)


def _fusion(location: FusedLoc) -> Sequence[Attribute]:
    match location.metadata:
        case FileRange():
            return ()
        case NoneAttr():
            return fused_parts(location)
        case metadata:
            return (metadata, *fused_parts(location))


_PARTS: dict[type[Attribute], Callable[[Any], Sequence[Attribute]]] = {
    ArrayAttr: lambda array: array.data,
    DictionaryAttr: _values,
    FileLineColLoc: _nothing,
    FusedLoc: _fusion,
    IntegerAttr: _nothing,
    NameLoc: _named_location,
    TensorType: lambda tensor: (tensor.element_type, tensor.encoding),
}
"""What is printed as part of an attribute of each type that has been met, in the order of the print."""


def _parts(attribute: Attribute) -> Sequence[Attribute]:
    find: Callable[[Any], Sequence[Attribute]] | None = _PARTS.get(type(attribute))
    if find is None:
        find = _PARTS[type(attribute)] = _parameters if isinstance(attribute, ParametrizedAttribute) else _nothing
    return find(attribute)
