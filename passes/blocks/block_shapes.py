"""Block shapes: blocks that fit in memory, or the shards of a mesh; for operations, and for groups of fused ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from sdy.blocks import BlockOperation, cost
from sdy.box import Box
from sdy.diagnostics import op_error
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding
from sdy.passes.blocks.group import Group
from sdy.passes.blocks.node import Node
from sdy.rule import FactorKind

BlockShapeOf = Callable[[Operation, BlockOperation], Sequence[int]]
"""(operation, its index space) -> the shape of its blocks."""


ChooseTile = Callable[[Group], bool]
"""Sets the shape of the blocks of a group, and the time that they take; returns False if none fits."""


@dataclass(frozen=True)
class Within:
    """Blocks that take at most `limit` bytes.

    `block_graph` chooses the shapes of the blocks of all operations together. Called with an operation, it halves the
    axis with the largest saving until a block of that operation alone fits. Reduction axes are not split;
    `sdy-split-reductions` converts them to other axes.

    Attributes:
        limit: The bytes of what a block reads and writes, and of its intermediate values.
    """

    limit: int

    def __call__(self, op: Operation, blocks: BlockOperation) -> Sequence[int]:
        """Return the shape of the blocks of an operation.

        Raises:
            DiagnosticError: Even the smallest blocks exceed the limit.
        """
        shape = list(blocks.index_shape)
        while (size := block_bytes(blocks, shape)) > self.limit:
            candidates = (half for half in halves(shape) if can_be_computed(blocks, half))
            halved = {tuple(candidate): block_bytes(blocks, candidate) for candidate in candidates}
            if not halved:
                raise op_error(op, f"its smallest blocks take {size:,} bytes, more than the limit of {self.limit:,}")
            shape = list(min(halved, key=halved.__getitem__))
        return shape


within = Within


def of_shardings(op: Operation, blocks: BlockOperation) -> Sequence[int]:
    """Return blocks equal to the devices' shards: each axis is split as the first tensor that it moves along.

    A `BlockShapeOf` for modules with shardings. Reduction axes are not split.
    """
    shape = list(blocks.index_shape)
    for value, access in zip((*op.results, *op.operands), (*blocks.results, *blocks.operands), strict=True):
        sharding = get_sharding(value)
        if sharding is None:
            continue
        mesh = mesh_of(sharding, op)
        for dim, split in enumerate(sharding.dims):
            axis = next(iter(access.axes_of(dim)), None)
            if axis is not None and shape[axis] == blocks.index_shape[axis]:
                candidate = [*shape]
                candidate[axis] = -(-shape[axis] // split.sharded_size(mesh))
                shape = candidate if can_be_computed(blocks, candidate) else shape
    return shape


def block_bytes(blocks: BlockOperation, shape: Sequence[int]) -> int:
    """Return the memory of a block of `shape` at the origin."""
    return int(cost(blocks, Box.of_shape(shape)).memory)


def can_be_computed(blocks: BlockOperation, shape: Sequence[int]) -> bool:
    """Return whether a block of `shape` can be computed independently of other blocks.

    It cannot if it is a slice of a reduction, or if its elements have gaps along a dimension that the full operation
    does not have, such as part of each feature group.
    """
    return all(
        size == axis.extent or axis.kind not in (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION)
        for size, axis in zip(shape, blocks.axes, strict=True)
    ) and all(
        set(access.projection.gaps(shape)) <= set(access.projection.gaps(blocks.index_shape))
        for access in blocks.accesses
    )


def halves(shape: Sequence[int]) -> Iterator[list[int]]:
    """Yield the shapes with half of the elements along one axis."""
    for axis, extent in enumerate(shape):
        if extent > 1:
            yield [-(-extent // 2) if number == axis else size for number, size in enumerate(shape)]


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
