"""Index maps of pads and slices: the operand row at each position of a result dimension."""

from dataclasses import dataclass

from sdy.passes.spmd.shards.halo import Reach
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp


@dataclass(frozen=True)
class SlicedDim:
    """A result dimension: every `stride`-th position from `-low` on, where operand row r is at `r * dilation`."""

    low: int
    dilation: int = 1
    stride: int = 1

    def reach(self, size: int, result_size: int, parts: int) -> Reach:
        """Return the positions that each of `parts` result shards needs of the `size` rows of the operand."""
        shard = -(-result_size // parts)
        length, total = ((count - 1) * self.stride + 1 for count in (shard, result_size))
        return Reach.steady(size, parts, self.low, shard * self.stride, length, total, self.dilation)


def sliced_dims(op: PadOp | SliceOp) -> list[SlicedDim]:
    """Return the index map of each result dimension of `op`."""
    if isinstance(op, SliceOp):
        return [SlicedDim(-start, stride=stride) for start, _, stride in op.ranges()]
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    return [SlicedDim(before, between + 1) for before, between in zip(low, interior, strict=True)]
