"""Tile assignments: a grid of tiles and the device of each.

Most are an iota: the device numbers in order, reshaped to a grid and transposed. `[4,2]<=[2,4]T(1,0)` are 4 x 2 tiles
for the devices 0 to 7, reshaped to 2 rows of 4 and read by columns: 0, 4, 1, 5, ...
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np


@dataclass(frozen=True, slots=True)
class TileAssignment:
    """The device of each tile, in row-major order of a grid of this shape."""

    shape: tuple[int, ...]
    devices: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.devices) != prod(self.shape):
            raise ValueError(f"{prod(self.shape)} tiles need as many devices, not {len(self.devices)}")
        if {*self.devices} != {*range(len(self.devices))}:
            last = len(self.devices) - 1
            raise ValueError(f"the devices of {len(self.devices)} tiles have to be 0 to {last}, each once")

    @classmethod
    def of_iota(cls, shape: Sequence[int], rows: Sequence[int], order: Sequence[int]) -> "TileAssignment":
        """Return tiles of `shape` for the devices of an iota of shape `rows`, transposed by `order`."""
        if sorted(order) != [*range(len(rows))]:
            raise ValueError(f"the order of {len(rows)} dimensions has to be 0 to {len(rows) - 1}, each once")
        return cls(tuple(shape), tuple(np.arange(prod(rows)).reshape(rows).transpose(order).ravel().tolist()))

    def iota(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the shape of the iota and its transposition; None if the devices are not an iota."""
        return _iota(self.devices)


def _iota(devices: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    remaining = np.array(devices)
    strides: list[int] = []  # by dimension, the last one first
    sizes: dict[int, int] = {}
    while len(remaining) > 1:
        stride = int(remaining[1])
        steps = remaining != np.arange(len(remaining)) * stride
        size = int(steps.argmax()) if steps.any() else len(remaining)
        if size < 2 or len(remaining) % size or stride in sizes:
            return None
        strides.append(stride)
        sizes[stride] = size
        remaining = remaining[::size]
    in_rows = sorted(strides, reverse=True)
    rows = tuple(sizes[stride] for stride in in_rows)
    order = tuple(in_rows.index(stride) for stride in reversed(strides))
    if prod(rows) != len(devices):
        return None
    rebuilt = TileAssignment.of_iota((len(devices),), rows, order)
    return (rows or (1,), order or (0,)) if rebuilt.devices == devices else None
