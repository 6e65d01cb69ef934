"""Tensors that are joined along a sharded dimension, and cut there again: their elements move between devices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import Operation

from sdy.axes import Axes, total_size
from sdy.dialect.axis_syntax import axes_text
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations_of
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.edits import value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram, is_in_manual_computation
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp


@dataclass(frozen=True)
class JoinedChunks:
    """A concatenation along a dimension that `axes` shard; their devices divide the size of each chunk."""

    join: ConcatenateOp
    axes: Axes

    @property
    def _index(self) -> int:
        return self.join.dimension.value.data

    @property
    def _chunks(self) -> Sequence[tuple[int, int, int]]:
        """The start and the limit of each chunk, and the size of the whole."""
        sizes = [shape_of(operand)[self._index] for operand in self.join.operands]
        ends = [*accumulate(sizes)]
        return [(end - size, end, ends[-1]) for size, end in zip(sizes, ends, strict=True)]

    def collectives(self, program: LintedProgram) -> list[Collective]:
        """Return the collectives of the concatenation, of cuts into the same chunks, and of their gradients."""
        return [each for each in program.collectives if each.source is self.join or self._is_cut(each.source)]

    def _is_cut(self, op: Operation | None) -> bool:
        return not {*_cuts(op)}.isdisjoint(self._chunks)

    def suspicion(self, collectives: Sequence[Collective]) -> Suspicion:
        """Return the match: it has no fix to try, since the program has to be written otherwise."""
        number, index = len(self.join.operands), self._index
        return Suspicion(
            self.join,
            f"{self.join.result.type} joins {number} tensors along dimension {index}, which {axes_text(self.axes)} "
            "shards: their elements move to other devices",
            f"compute with each of them on its own, or interleave them: stack them along a new dimension {index + 1} "
            f"and merge it into dimension {index}, so that each device keeps its part of every one",
            received=sum(each.bytes for each in collectives),
            collectives=[each.op for each in collectives],
        )


def joined_chunks(program: LintedProgram) -> Iterator[JoinedChunks]:
    """Yield the concatenations along a sharded dimension, except those of slices, which roll or shift a tensor."""
    for join in operations_of(program.module, ConcatenateOp):
        index = join.dimension.value.data
        axes = max((value_dims(each)[index] for each in (*join.operands, join.result)), key=len)
        parts = total_size(axes, program.mesh)
        is_cut = any(isinstance(each.owner, SliceOp) for each in join.operands)
        is_even = all(shape_of(each)[index] % parts == 0 for each in join.operands)
        if parts > 1 and len(join.operands) > 1 and is_even and not is_cut and not is_in_manual_computation(join):
            yield JoinedChunks(join, axes)


def _cuts(op: Operation | None) -> Iterator[tuple[int, int, int]]:
    """Yield the start and the limit of the part that an operation cuts out of a dimension, or pads, and the size."""
    match op:
        case SliceOp():
            for (start, limit, _), size in zip(op.ranges(), shape_of(op.operand), strict=True):
                yield start, limit, size
        case PadOp():
            lows, sizes = op.edge_padding_low.get_values(), zip(shape_of(op.operand), shape_of(op.result), strict=True)
            for low, (size, whole) in zip(lows, sizes, strict=True):
                yield low, low + size, whole
        case _:
            return
