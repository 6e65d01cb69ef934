"""`sdy-merge-overlapping-permutes`: one collective permute for overlapping slices of a tensor."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.ir.editing import AnalysisPreservingPass, erase, replace
from sdy.ir.walking import operations, operations_of
from sdy.passes.spmd.value_numbers import ValueNumbers
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.slicing import SliceOp

Box = tuple[tuple[int, int], ...]
"""Start and limit of a slice in each dimension."""


class MergeOverlappingPermutesPass(AnalysisPreservingPass):
    """Merge collective permutes of overlapping slices of a tensor between the same devices.

    Shifts of a sharded tensor by one and by two rows send its last row and its last two rows. Before::

        %0 = stablehlo.slice %arg0 [3:4] : (tensor<4xf32>) -> tensor<1xf32>
        %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]>}>
        %2 = stablehlo.slice %arg0 [2:4] : (tensor<4xf32>) -> tensor<2xf32>
        %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[0, 1]]>}>

    After, devices receive the smallest slice that includes both::

        %0 = stablehlo.slice %arg0 [2:4] : (tensor<4xf32>) -> tensor<2xf32>
        %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]>}>
        %2 = stablehlo.slice %1 [1:2] : (tensor<2xf32>) -> tensor<1xf32>

    Unchanged are permutes in different blocks, those of strided slices, and those that receive fewer elements alone.
    """

    name = "sdy-merge-overlapping-permutes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in operations_of(op, FuncOp):
            if len(operations_of(function, CollectivePermuteOp)) > 1:
                for merged in [*_overlapping(function)]:
                    merged.emit()


@dataclass
class _Merged:
    """Permutes of slices of equal tensors, in the order of the program, and the smallest slice that includes all."""

    permutes: list[CollectivePermuteOp]
    box: Box

    def take(self, permute: CollectivePermuteOp, box: Box) -> bool:
        """Add a permute if both then receive fewer elements, and return whether they do."""
        union = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(self.box, box, strict=True))
        is_merged = permute.parent is self.permutes[0].parent and _size(union) < _size(self.box) + _size(box)
        if is_merged:
            self.permutes.append(permute)
            self.box = union
        return is_merged

    def emit(self) -> None:
        """Replace the permutes by slices of one permute."""
        first, *_ = self.permutes
        starts, limits = zip(*self.box, strict=True)
        emit = before(first)
        joined = emit.slice(_slice_of(first).operand, starts, limits)
        received = emit.insert(
            CollectivePermuteOp.create(operands=[joined], result_types=[joined.type], properties=first.properties)
        )
        for permute in self.permutes:
            part = _slice_of(permute)
            rows = ((start - origin, limit - origin) for (start, limit), origin in zip(_box(part), starts, strict=True))
            replace(permute, [before(permute).slice(received, *zip(*rows, strict=True))])
            if part.result.first_use is None:
                erase(part)


def _overlapping(function: FuncOp) -> Iterator[_Merged]:
    """Yield the permutes that are to be merged."""
    numbers = ValueNumbers()
    known: defaultdict[Hashable, list[_Merged]] = defaultdict(list)
    for op in operations(function)[1:]:
        numbers.number(op)
        if not isinstance(op, CollectivePermuteOp):
            continue
        part = op.operand.owner
        if isinstance(part, SliceOp) and all(stride == 1 for _, _, stride in part.ranges()):
            same = known[numbers.number_of(part.operand), op.source_target_pairs]
            if not any(merged.take(op, _box(part)) for merged in same):
                same.append(_Merged([op], _box(part)))
    yield from (merged for each in known.values() for merged in each if len(merged.permutes) > 1)


def _slice_of(permute: CollectivePermuteOp) -> SliceOp:
    part = permute.operand.owner
    assert isinstance(part, SliceOp)
    return part


def _box(part: SliceOp) -> Box:
    return tuple((start, limit) for start, limit, _ in part.ranges())


def _size(box: Box) -> int:
    return math.prod(limit - start for start, limit in box)
