"""What an `HloSharding` of XLA says, as a value."""

from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from sdy.gspmd.tile_assignment import TileAssignment

Kind: TypeAlias = Literal["replicated", "maximal", "manual", "unreduced", "unknown", "tiled"]
Subgroup: TypeAlias = Literal["manual", "replicated", "unreduced"]


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """The group of values that are sharded alike, to which a value belongs."""

    number: int
    word: Literal["shard_as", "shard_like"] = "shard_as"


@dataclass(frozen=True, slots=True)
class HloSharding:
    """How GSPMD lays out a tensor.

    replicated   whole on each device
    maximal      whole on `device` alone
    manual       what each device has is the program's business
    unreduced    each device has a partial sum
    unknown      nothing is said, but perhaps a `group`
    tiled        cut into the tiles of `tiles`, whose last dimensions may be `subgroups` instead, one for each: devices
                 along these have the same tile, partial sums of it, or what the program says
    """

    kind: Kind
    device: int | None = None
    tiles: TileAssignment | None = None
    subgroups: tuple[Subgroup, ...] = ()
    group: ShardGroup | None = None

    @classmethod
    def tiled(cls, tiles: TileAssignment, subgroups: tuple[Subgroup, ...] = ()) -> "HloSharding":
        """These tiles, in the simplest form: no subgroups of single devices, and no tiles where there is just one.

        Raises ValueError where there are more subgroups than dimensions.
        """
        if len(subgroups) > len(tiles.shape):
            raise ValueError(f"{len(subgroups)} subgroups need as many dimensions, and not {len(tiles.shape)}")
        first = len(tiles.shape) - len(subgroups)
        if prod(tiles.shape[:first]) == 1 and len({*subgroups}) == 1:
            return cls(subgroups[0])
        if len(tiles.devices) == 1:
            return cls("replicated")
        sizes = {index: size for index, size in enumerate(tiles.shape) if index < first or size > 1}
        left: tuple[Subgroup, ...] = tuple(subgroups[index - first] for index in sizes if index >= first)
        if len(left) < len(subgroups):
            return cls.tiled(TileAssignment(tuple(sizes.values()), tiles.devices), left)
        return cls("tiled", None, tiles, subgroups)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """The number of tiles along each dimension of the tensor; () for what is not tiled."""
        return () if self.tiles is None else self.tiles.shape[: len(self.tiles.shape) - len(self.subgroups)]

    @property
    def is_manual(self) -> bool:
        """Whether some devices, or all, are the program's business."""
        return self.kind == "manual" or "manual" in self.subgroups
