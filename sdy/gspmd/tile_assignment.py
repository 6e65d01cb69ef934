"""Tile assignments: a grid of tiles, and the device that has each.

Most are an iota: the devices in order, written as rows of a grid, of which some dimensions then change places.
`[4,2]<=[2,4]T(1,0)` are 4 x 2 tiles for the devices 0 to 7, written as 2 rows of 4 and read by columns: 0, 4, 1, 5, ...
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np


@dataclass(frozen=True, slots=True)
class TileAssignment:
    """The device of each tile, in row-major order of a grid of tiles that has this shape."""

    shape: tuple[int, ...]
    devices: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.devices) != prod(self.shape):
            raise ValueError(f"{prod(self.shape)} tiles need as many devices, and not {len(self.devices)}")
        if {*self.devices} != {*range(len(self.devices))}:
            raise ValueError(f"the devices of {len(self.devices)} tiles are 0 to {len(self.devices) - 1}, each once")

    @classmethod
    def of_iota(cls, shape: Sequence[int], rows: Sequence[int], order: Sequence[int]) -> "TileAssignment":
        """Tiles of this shape for the devices that an iota of shape `rows` has once its dimensions are in `order`."""
        if sorted(order) != [*range(len(rows))]:
            raise ValueError(f"the order of {len(rows)} dimensions is 0 to {len(rows) - 1}, each once")
        return cls(tuple(shape), tuple(np.arange(prod(rows)).reshape(rows).transpose(order).ravel().tolist()))

    def iota(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The shape of the iota that the devices are, and the order of its dimensions; None where they are none."""
        return _iota(self.devices)


def _iota(devices: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    left = np.array(devices)
    strides: list[int] = []  # of the dimensions, the last one first
    sizes: dict[int, int] = {}
    while len(left) > 1:
        stride = int(left[1])
        steps = left != np.arange(len(left)) * stride
        size = int(steps.argmax()) if steps.any() else len(left)
        if size < 2 or len(left) % size or stride in sizes:
            return None
        strides.append(stride)
        sizes[stride] = size
        left = left[::size]
    in_rows = sorted(strides, reverse=True)
    rows = tuple(sizes[stride] for stride in in_rows)
    order = tuple(in_rows.index(stride) for stride in reversed(strides))
    if prod(rows) != len(devices):
        return None
    again = TileAssignment.of_iota((len(devices),), rows, order)
    return (rows or (1,), order or (0,)) if again.devices == devices else None
