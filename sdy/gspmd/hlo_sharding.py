"""XLA's `HloSharding` as a value."""

from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from sdy.gspmd.tile_assignment import TileAssignment

Kind: TypeAlias = Literal["replicated", "maximal", "manual", "unreduced", "unknown", "tiled"]
Subgroup: TypeAlias = Literal["manual", "replicated", "unreduced"]


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """A group of values that are sharded alike."""

    number: int
    word: Literal["shard_as", "shard_like"] = "shard_as"


@dataclass(frozen=True, slots=True)
class HloSharding:
    """A GSPMD sharding of a tensor.

    Attributes:
        kind: `replicated`; `maximal`: the full tensor on `device` only; `manual`: the program is already per-device;
            `unreduced`: each device has a partial sum; `unknown`: no sharding, but possibly a `group`; `tiled`:
            partitioned into `tiles`.
        device: The device of a maximal sharding.
        tiles: The tiles of a tiled sharding, over the dimensions of the tensor and then of `subgroups`.
        subgroups: The meaning of the last dimensions of `tiles`: devices along them have replicas, partial sums or
            manual values.
        group: The group that the value belongs to.
    """

    kind: Kind
    device: int | None = None
    tiles: TileAssignment | None = None
    subgroups: tuple[Subgroup, ...] = ()
    group: ShardGroup | None = None

    @classmethod
    def tiled(cls, tiles: TileAssignment, subgroups: tuple[Subgroup, ...] = ()) -> "HloSharding":
        """Return a tiled sharding in canonical form.

        Subgroups of size 1 are dropped, and a single tile becomes a replicated sharding.

        Raises:
            ValueError: There are more subgroups than dimensions.
        """
        if len(subgroups) > len(tiles.shape):
            raise ValueError(f"{len(subgroups)} subgroups need as many dimensions, not {len(tiles.shape)}")
        first = len(tiles.shape) - len(subgroups)
        if prod(tiles.shape[:first]) == 1 and len({*subgroups}) == 1:
            return cls(subgroups[0])
        if len(tiles.devices) == 1:
            return cls("replicated")
        sizes = {index: size for index, size in enumerate(tiles.shape) if index < first or size > 1}
        remaining: tuple[Subgroup, ...] = tuple(subgroups[index - first] for index in sizes if index >= first)
        if len(remaining) < len(subgroups):
            return cls.tiled(TileAssignment(tuple(sizes.values()), tiles.devices), remaining)
        return cls("tiled", None, tiles, subgroups)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """Number of tiles along each dimension of the tensor; () if it is not tiled."""
        return () if self.tiles is None else self.tiles.shape[: len(self.tiles.shape) - len(self.subgroups)]

    @property
    def is_manual(self) -> bool:
        """True if some or all devices are manual."""
        return self.kind == "manual" or "manual" in self.subgroups
