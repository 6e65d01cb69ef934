"""Into which blocks an operation is cut: those that fit in memory, or those of the devices of a mesh."""

from collections.abc import Callable, Iterator, Sequence

from xdsl.ir import Operation

from sdy.blocks import BlockOperation, cost
from sdy.box import Box
from sdy.diagnostics import op_error
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding
from sdy.rule import FactorKind

BlockShapeOf = Callable[[Operation, BlockOperation], Sequence[int]]
"""(operation, its index space) -> the shape of its blocks."""


def within(limit: int) -> BlockShapeOf:
    """Blocks that take at most `limit` bytes each: the axis that saves most is halved until they do.

    Axes of reductions stay whole; `sdy-split-reductions` makes others of them. Raises DiagnosticError, with the
    numbers, where not even the smallest blocks fit.
    """

    def block_shape(op: Operation, blocks: BlockOperation) -> Sequence[int]:
        shape = list(blocks.index_shape)
        while (size := block_bytes(blocks, shape)) > limit:
            halved = {tuple(candidate): block_bytes(blocks, candidate) for candidate in _halved(blocks, shape)}
            if not halved:
                raise op_error(op, f"its smallest blocks take {size:,} bytes, more than the limit of {limit:,}")
            shape = list(min(halved, key=halved.__getitem__))
        return shape

    return block_shape


def of_shardings(op: Operation, blocks: BlockOperation) -> Sequence[int]:
    """Blocks that are the parts of devices: an axis is cut where the first tensor that it moves along is split.

    That is a `BlockShapeOf`, for a module with shardings. Axes of reductions stay whole.
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
                cut = [*shape]
                cut[axis] = -(-shape[axis] // split.sharded_size(mesh))
                shape = cut if can_be_computed(blocks, cut) else shape
    return shape


def block_bytes(blocks: BlockOperation, shape: Sequence[int]) -> int:
    """The memory that a block of that shape at the origin takes."""
    return int(cost(blocks, Box.whole(shape)).memory)


def can_be_computed(blocks: BlockOperation, shape: Sequence[int]) -> bool:
    """Whether a block of that shape has all that it needs, and gives all of a part of the result.

    It does not if it is a part of a reduction, or has elements of a dimension that are apart where those of the whole
    are not, as a part of each group of features.
    """
    return all(
        size == axis.extent or axis.kind not in (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION)
        for size, axis in zip(shape, blocks.axes, strict=True)
    ) and all(
        set(access.projection.gaps(shape)) <= set(access.projection.gaps(blocks.index_shape))
        for access in blocks.accesses
    )


def _halved(blocks: BlockOperation, shape: Sequence[int]) -> Iterator[list[int]]:
    for axis, extent in enumerate(shape):
        half = [-(-extent // 2) if number == axis else size for number, size in enumerate(shape)]
        if extent > 1 and can_be_computed(blocks, half):
            yield half
