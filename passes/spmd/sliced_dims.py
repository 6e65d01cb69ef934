"""The dimensions of a pad or a slice: which row of the operand stands at each place of the result."""

from dataclasses import dataclass

from sdy.passes.spmd.reach import Reach
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp


@dataclass(frozen=True)
class SlicedDim:
    """A dimension of the result: each `stride`-th place from `-low` on, where rows stand `dilation` places apart."""

    low: int
    dilation: int = 1
    stride: int = 1

    def reach(self, size: int, result_size: int, parts: int) -> Reach:
        """Return the places that each of `parts` equal parts of the result needs of `size` rows of the operand."""
        shard = -(-result_size // parts)
        length, total = ((count - 1) * self.stride + 1 for count in (shard, result_size))
        return Reach.steady(size, parts, self.low, shard * self.stride, length, total, self.dilation)


def sliced_dims(op: PadOp | SliceOp) -> list[SlicedDim]:
    """Return the dimensions of the result of `op`."""
    if isinstance(op, SliceOp):
        return [SlicedDim(-start, stride=stride) for start, _, stride in op.ranges()]
    low, interior = op.edge_padding_low.get_values(), op.interior_padding.get_values()
    return [SlicedDim(before, between + 1) for before, between in zip(low, interior, strict=True)]
