"""Choice of the shape of the blocks of a group."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sdy.passes.blocks.group import Group
from sdy.passes.blocks.node import Node

ChooseTile = Callable[[Group], bool]
"""Sets the shape of the blocks of a group, and the time that they take; returns False if none fits."""


def choose_within(limit: int) -> ChooseTile:
    """Return a function that halves classes until the largest block fits in `limit` bytes, each time the cheapest."""

    def choose(group: Group) -> bool:
        tile = list(group.extents)
        if any(node.blocks is None for node in group.computed):
            return True
        while (memory := group.memory(tile)) > limit:
            halves = [half for half in _halves(group, tile) if group.memory(half) < memory]
            if not halves:
                group.tile = tile
                return False
            tile = min(halves, key=group.seconds)
        group.tile, group.time = tile, group.seconds(tile)
        return True

    return choose


def _halves(group: Group, tile: Sequence[int]) -> Iterable[list[int]]:
    for number in group.split_classes:
        if tile[number] > 1:
            half = [-(-size // 2) if place == number else size for place, size in enumerate(tile)]
            if group.can_be_computed(half):
                yield half


def choose_shapes(shapes: Mapping[Node, Sequence[int]]) -> ChooseTile:
    """Return a function that gives each operation the shape of its blocks; operations that disagree are not fused."""

    def choose(group: Group) -> bool:
        tile = list(group.extents)
        for node in group.computed:
            for number, size in zip(group.classes(node), shapes.get(node, ()), strict=node in shapes):
                tile[number] = size
        splits = [
            {number for number in group.classes(node) if tile[number] < group.extents[number]}
            for node in group.computed
        ]
        agree = all(
            list(shapes[node]) == group.shape_of(node, tile) for node in group.computed if node in shapes
        ) and all(split == splits[0] and split <= set(group.split_classes) for split in splits)
        group.tile, group.time = tile, group.seconds(tile)
        return agree

    return choose
