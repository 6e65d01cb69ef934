"""The `linalg` dialect: the loops of an operation are the axes of its grid."""

from typing import TYPE_CHECKING

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import NoBlocks, register
from sdy.rules.linalg import INDEXED
from sdy.rules.linalg_loops import indexed_operation

if TYPE_CHECKING:
    from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation


@register(*(f"linalg.{name}" for name in INDEXED.split()))
def by_loops(op: "LinalgStructuredOperation", block: BlockBuilder) -> float:
    """Add an axis per loop; a step runs the body once.

    A dimension whose index is not a sum of loops is read in full.
    """
    if not op.results:
        raise NoBlocks
    indexed = indexed_operation(op)
    sides = (indexed.operands, indexed.results)
    for number, loop in indexed.loops.items():
        places = [
            {
                tensor: (dim, index.strides[number])
                for tensor, dims in enumerate(side)
                for dim, index in dims.split.items()
                if index.strides and number in index.strides
            }
            for side in sides
        ]
        block.add(loop.extent, places[0], places[1], loop.kind, loop.size)
    for side, (tensors, see) in enumerate(zip(sides, (block.see_operand, block.see_result), strict=True)):
        for tensor, dims in enumerate(tensors):
            for dim, index in dims.split.items():
                see(tensor, dim, offset=index.offset)
            for dim, index in dims.whole.items():
                if index.size != 1:
                    place = {tensor: dim}
                    block.add_whole(index.size, {} if side else place, place if side else {})
    return len(op.regions[0].block.ops) - 1  # without the terminator
