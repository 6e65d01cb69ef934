"""Interning of the strings, locations, types and shardings of a report, so that each is stored once."""

from collections.abc import Hashable, Iterator
from math import prod
from typing import Any, Generic, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.device_groups import shard_indices
from sdy.diagnostics import Location, Where, location_of
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.meshes import device_count, find_mesh
from sdy.formatting import escape_line
from sdy.ir.shapes import shape
from sdy.passes.common.properties import num_bytes
from sdy.passes.common.replication_cost import local_bytes
from sdy.sharding import TensorSharding

ItemT = TypeVar("ItemT", bound=Hashable)

Json = dict[str, Any]

NONE = -1
"""The number that stands for the absence of an item."""

_MOST_DRAWN = 4096
"""Maximum number of devices for which the shards of a tensor are drawn."""


class Numbering(Generic[ItemT]):
    """Interned items, numbered in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[ItemT, int] = {}

    def of(self, item: ItemT) -> int:
        """Return the number of `item`."""
        return self._numbers.setdefault(item, len(self._numbers))

    def __iter__(self) -> Iterator[ItemT]:
        return iter(self._numbers)


class Numbers:
    """Interned strings, locations, types, shardings and tensors of a report."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._strings = Numbering[str]()
        self._places = Numbering[Location]()
        self._types = Numbering[Attribute]()
        self._layouts = Numbering[TensorSharding | None]()
        self._tensors = Numbering[tuple[Attribute, TensorSharding | None]]()

    def string(self, text: str) -> int:
        """Return the number of a string, escaped for display."""
        return self._strings.of(escape_line(text))

    def place(self, where: Where) -> int:
        """Return the number of a source location."""
        place = location_of(where)
        return NONE if place is None else self._places.of(place)

    def type(self, type_: Attribute) -> int:
        """Return the number of a type."""
        return self._types.of(type_)

    def layout(self, sharding: TensorSharding | None) -> int:
        """Return the number of a sharding."""
        return self._layouts.of(sharding)

    def tensor(self, type_: Attribute, sharding: TensorSharding | None) -> int:
        """Return the number of a pair of type and sharding."""
        return self._tensors.of((type_, sharding))

    def places(self) -> list[Location]:
        """Return the locations interned so far, ordered by number."""
        return [*self._places]

    def as_json(self) -> Json:
        """Serialize all items, ordered by number."""
        tensors = [
            (self.type(type_), self.layout(sharding), self._local_bytes(type_, sharding))
            for type_, sharding in self._tensors
        ]
        places = [(self.string(place.filename), place.line, place.column) for place in self._places]
        return {
            "tensors": tensors,
            "layouts": [self._layout(sharding) for sharding in self._layouts],
            "types": [
                {"text": escape_line(str(type_)), "shape": shape(type_), "bytes": num_bytes(type_)}
                for type_ in self._types
            ],
            "places": places,
            "strings": [*self._strings],
        }

    def _local_bytes(self, type_: Attribute, sharding: TensorSharding | None) -> int:
        """Return the bytes per device of a tensor, including padding."""
        mesh = None if sharding is None else find_mesh(sharding, self._module)
        return num_bytes(type_) if mesh is None else local_bytes(type_, sharding, mesh)

    def _layout(self, sharding: TensorSharding | None) -> Json:
        """Serialize a sharding.

        Returns:
            Its text, the number of shards of each dimension, the shard that each device holds, and the number of
            replicas of each shard.
        """
        text = escape_line(format_dims(sharding).replace('"', ""))
        mesh = None if sharding is None else find_mesh(sharding, self._module)
        if sharding is None or mesh is None or mesh.is_maximal:
            return {"text": text, "parts": [], "holds": [], "copies": device_count(self._module)}
        parts = [dim.sharded_size(mesh) for dim in sharding.dims]
        axes = [axis for dim in sharding.dims for axis in dim.axes]
        holds = shard_indices(axes, mesh) if mesh.size <= _MOST_DRAWN else []
        return {"text": text, "parts": parts, "holds": holds, "copies": max(mesh.size // prod(parts), 1)}
