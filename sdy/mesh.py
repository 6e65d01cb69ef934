"""Device meshes: a grid of devices whose dimensions are named axes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sdy.interned import Interned

MOST_DEVICES = 2**17
"""So many devices can be listed, which is more than any cluster has."""


@dataclass(frozen=True, eq=False)
class Mesh(Interned):
    """Named axes with sizes, and optionally which device stands at each place of the grid.

    Devices are numbered in row-major order of the axes, the last axis being the fastest, unless `device_ids` lists
    another order; listing that very order is listing none. Two special cases have no axes: the empty mesh, a
    placeholder that any mesh can replace, and a maximal mesh, whose single device id says that one device holds the
    tensor whole.
    """

    axes: tuple[tuple[str, int], ...] = ()
    device_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.axes and self.device_ids and len(self.device_ids) == self.size and self._lists_devices_in_order():
            object.__setattr__(self, "device_ids", ())

    def _lists_devices_in_order(self) -> bool:
        # Of 0.0 as the first id something is still to be said.
        return all(type(device) is int and device == place for place, device in enumerate(self.device_ids))

    @classmethod
    def of(cls, axes: Mapping[str, int], device_ids: Sequence[int] = ()) -> "Mesh":
        """The mesh with these axis sizes, major axis first: `Mesh.of({"data": 4, "model": 2})`."""
        return cls(tuple(axes.items()), tuple(device_ids))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return dict(self.axes)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, (name, _) in enumerate(self.axes)}

    def __contains__(self, name: str) -> bool:
        return name in self._sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, major first."""
        return tuple(self._sizes)

    @cached_property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self._sizes.values())

    @property
    def is_empty(self) -> bool:
        """Whether this is the placeholder mesh: neither axes nor device ids."""
        return not self.axes and not self.device_ids

    @property
    def is_maximal(self) -> bool:
        """Whether this mesh is a single device that holds whole tensors."""
        return not self.axes and len(self.device_ids) == 1

    def axis_size(self, name: str) -> int:
        """The number of devices along axis `name`; KeyError where the mesh has no such axis."""
        return self._sizes[name]

    def axis_index(self, name: str) -> int:
        """The position of axis `name`, 0 being the major axis; KeyError where the mesh has no such axis."""
        return self._indices[name]

    def device_order(self) -> tuple[int, ...]:
        """The device id at each place of the grid, in row-major order."""
        return self.device_ids or tuple(range(self.size))

    def same_devices(self, other: "Mesh") -> bool:
        """Whether both meshes put the same devices in the same order, however their axes cut them."""
        if self.size != other.size:
            return False
        # Lists of devices that are not written out are not made, as there may be any number of them.
        return self.device_ids == other.device_ids or self.device_order() == other.device_order()
