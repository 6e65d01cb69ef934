"""Device meshes: a grid of devices whose dimensions are named axes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

from sdy.interned import Interned

MOST_DEVICES = 2**17
"""Maximal number of devices that can be enumerated, more than any cluster has."""


class MeshOfJax(Protocol):
    """A `jax.sharding.Mesh` or `AbstractMesh`, whose `shape` has the size of each axis."""

    @property
    def axis_names(self) -> tuple[Any, ...]:
        """The names of the axes, major axis first."""
        ...


@dataclass(frozen=True, eq=False)
class Mesh(Interned):
    """Named axes with sizes, and optionally the device at each position of the grid.

    Devices are numbered in row-major order of the axes, the last axis being the fastest, unless `device_ids` lists
    another order; listing the default order is the same as listing none. Two special cases have no axes: the empty
    mesh, a placeholder that any mesh can replace, and a maximal mesh, whose single device id denotes a device that
    holds the full tensor.
    """

    axes: tuple[tuple[str, int], ...] = ()
    device_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.axes and self.device_ids and len(self.device_ids) == self.size and self._lists_devices_in_order():
            object.__setattr__(self, "device_ids", ())

    def _lists_devices_in_order(self) -> bool:
        # Ids of other types, as 0.0, are kept for the type check to reject.
        return all(type(device) is int and device == place for place, device in enumerate(self.device_ids))

    @classmethod
    def of(cls, axes: "Mapping[str, int] | MeshOfJax", device_ids: Sequence[int] = ()) -> "Mesh":
        """Return the mesh with these axis sizes, as in `Mesh.of({"data": 4, "model": 2})`.

        Args:
            axes: The size of each axis, major axis first, or a mesh of jax.
            device_ids: The device at each position of the grid, in row-major order; consecutive by default.

        Raises:
            TypeError: `axes` is neither a mapping nor a mesh.
            ValueError: A size is not positive.
        """
        given: Any = axes if isinstance(axes, Mapping) else getattr(axes, "shape", None)
        if not isinstance(given, Mapping):
            raise TypeError(f'expected the size of each mesh axis, such as {{"data": 4, "model": 2}}, not {axes!r}')
        sizes = cast(Mapping[str, int], given)
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f'mesh axis "{name}" has size {size}; a size is at least 1')
        return cls(tuple(sizes.items()), tuple(device_ids))

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
        """True if this is the placeholder mesh, without axes and device ids."""
        return not self.axes and not self.device_ids

    @property
    def is_maximal(self) -> bool:
        """True if this mesh is a single device that holds full tensors."""
        return not self.axes and len(self.device_ids) == 1

    def axis_size(self, name: str) -> int:
        """Return the number of devices along axis `name`.

        Raises:
            KeyError: The mesh has no axis `name`.
        """
        return self._sizes[name]

    def axis_index(self, name: str) -> int:
        """Return the position of axis `name`, 0 being the major axis.

        Raises:
            KeyError: The mesh has no axis `name`.
        """
        return self._indices[name]

    def device_order(self) -> tuple[int, ...]:
        """Return the device id at each position of the grid, in row-major order."""
        return self.device_ids or tuple(range(self.size))

    def same_devices(self, other: "Mesh") -> bool:
        """Return whether both meshes have the same devices in the same order, whatever their axes."""
        if self.size != other.size:
            return False
        # Compare explicit lists first: the implicit order of a huge mesh should not be enumerated.
        return self.device_ids == other.device_ids or self.device_order() == other.device_order()
