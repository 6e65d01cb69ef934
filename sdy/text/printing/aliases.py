"""Aliases of attributes and types: `#map = affine_map<(d0) -> (d0)>`, `#loc3 = loc("f.py":10:7)`.

MLIR gives aliases to affine maps and sets, locations, and tuples of many types. It numbers them by nesting depth, types
before attributes, then in the order of their first use. Aliases of locations that only operations use are deferred:
they are defined after the program, all others before it. The numbers are thus known only at the end of the text; until
then a mark stands for the alias.
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

_PREFIXES: dict[type[Attribute], str] = {
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
"""The mark of the alias with this number; the character NUL, escaped in strings, occurs nowhere else in the text."""

_MAX_INLINE_TYPES = 16
"""A tuple of more types than this gets an alias."""


def register_alias_prefix(kind: type[Attribute], prefix: str) -> None:
    """Register the prefix of the aliases of a dialect's attribute class."""
    _PREFIXES[kind] = prefix


def _prefix(attribute: Attribute) -> str | None:
    """Return the prefix of an attribute's alias, None if it gets no alias."""
    prefix = _PREFIXES.get(type(attribute))
    if prefix is not None and isinstance(attribute, TupleType) and len(attribute.types) <= _MAX_INLINE_TYPES:
        return None
    return prefix


@dataclass
class _Alias:
    attribute: Attribute
    prefix: str
    mark: str
    deferred: bool
    depth: int = 1
    name: str = ""

    @property
    def is_type(self) -> bool:
        return isinstance(self.attribute, TypeAttribute)

    @property
    def order(self) -> tuple[int, bool, str]:
        return self.depth, not self.is_type, self.prefix


@dataclass
class Aliases:
    """The aliases used in a printed text; with `enabled` false everything is printed inline."""

    enabled: bool = False

    _aliases: dict[Attribute, _Alias] = field(default_factory=dict[Attribute, _Alias])
    _by_id: dict[int, tuple[Attribute, _Alias]] = field(default_factory=dict[int, tuple[Attribute, _Alias]])
    """Aliases by attribute identity: hashing a location is slow, as it hashes the nested ones."""
    _in_order: list[_Alias] = field(default_factory=list[_Alias])
    """In the order of first use."""
    _depths: dict[int, tuple[Attribute, int]] = field(default_factory=dict[int, tuple[Attribute, int]])
    """The nesting depth of aliases in visited attributes without an alias, by attribute identity."""

    def visit(self, attribute: Attribute, *, deferred: bool = False) -> int:
        """Add an attribute's aliases, defined after the program if `deferred`; return their nesting depth."""
        if not self.enabled:
            return 0
        prefix = _prefix(attribute)
        if prefix is None:
            known = self._depths.get(id(attribute))
            if known is not None:
                return known[1]
            deepest = self._visit_parts(attribute, deferred)
            depth = deepest + 1 if deepest else 0
            if not deferred:
                self._depths[id(attribute)] = attribute, depth
            return depth
        alias = self._find(attribute)
        if alias is None:
            alias = self._aliases[attribute] = _Alias(attribute, prefix, f"\0{len(self._in_order)}\0", deferred)
            self._in_order.append(alias)
        elif deferred or not alias.deferred:
            return alias.depth
        alias.deferred = deferred
        alias.depth = self._visit_parts(attribute, deferred) + 1
        return alias.depth

    def _visit_parts(self, attribute: Attribute, deferred: bool) -> int:
        parts = _parts(attribute)
        return max([self.visit(part, deferred=deferred) for part in parts]) if parts else 0

    def mark(self, attribute: Attribute) -> str:
        """Return the mark of a visited attribute's alias; an empty string if it has none."""
        if not self.enabled or _prefix(attribute) is None:
            return ""
        alias = self._find(attribute)
        return "" if alias is None else alias.mark

    def _find(self, attribute: Attribute) -> _Alias | None:
        """Return the alias of a visited attribute."""
        known = self._by_id.get(id(attribute))
        if known is not None:
            return known[1]
        alias = self._aliases.get(attribute)
        if alias is not None:
            self._by_id[id(attribute)] = attribute, alias
        return alias

    def define(self, program: str, in_full: Callable[[Attribute], str]) -> str:
        """Replace the marks in a program by the names of the aliases, and add their definitions.

        Args:
            program: The text with marks.
            in_full: Returns the text of an attribute without its own alias.
        """
        if not self.enabled:
            return program
        # Printing a definition may add aliases to the list, which the loop then reaches.
        definitions = [(alias, in_full(alias.attribute)) for alias in self._in_order]
        definitions.sort(key=lambda definition: definition[0].order)
        count = Counter[str]()
        for alias, _ in definitions:
            alias.name = f"{'!' if alias.is_type else '#'}{alias.prefix}{count[alias.prefix] or ''}"
            count[alias.prefix] += 1
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
"""Functions that return the nested attributes in print order, by attribute class; filled on first use."""


def _parts(attribute: Attribute) -> Sequence[Attribute]:
    find: Callable[[Any], Sequence[Attribute]] | None = _PARTS.get(type(attribute))
    if find is None:
        find = _PARTS[type(attribute)] = _parameters if isinstance(attribute, ParametrizedAttribute) else _nothing
    return find(attribute)
