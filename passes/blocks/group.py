"""Groups of fused operations: the axes that their blocks share, and the memory and the time that the blocks take.

A group is computed block by block, and intermediate values of a block are stored nowhere. The axes of its operations
that move along the same dimension of a value inside of the group are one *class*: a block has a range of each class. A
class that an operation reduces or reads in full is not split.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sdy.array_types import array_type
from sdy.ir.shapes import shape
from sdy.passes.blocks.node import Dim, Node
from sdy.stablehlo import WhileOp

SECONDS_PER_BLOCK = 5e-5
BYTES_PER_SECOND = 2e9
FLOPS_PER_SECOND = 2e10

_OPTIMIZATION_SECONDS = 0.05
"""The time that XLA needs to optimize the program of a block."""

Tile = Sequence[int]
"""The number of steps of a block along each class."""


class Read(NamedTuple):
    """An operand of an operation that another group computes."""

    node: Node
    operand: int

    @property
    def value(self) -> SSAValue:
        """The value that is read."""
        return self.node.values[self.operand]


class _Term(NamedTuple):
    """A product of extents, such as the number of elements of a block of a tensor."""

    dims: tuple[Dim, ...]

    def at(self, tile: Tile) -> int:
        return prod(dim.extent(tile) for dim in self.dims)


@dataclass(eq=False)
class Group:
    """Operations that are computed block by block.

    Attributes:
        nodes: The operations in program order, views included.
        outputs: The results that are read outside of the group.
    """

    nodes: Sequence[Node]
    outputs: Sequence[SSAValue]

    def __post_init__(self) -> None:
        self.tile: Tile = self.extents
        self.time = 0.0
        """The shape of a block, and the predicted time of all blocks in seconds; see `choose_tile`."""

    @cached_property
    def computed(self) -> Sequence[Node]:
        """The operations that are not views."""
        return [node for node in self.nodes if not node.is_view]

    @cached_property
    def producers(self) -> Mapping[SSAValue, tuple[Node, int]]:
        """The operation, and the number of its result, of each value with elements that is computed in the group."""
        return {
            result: (node, number)
            for node in self.nodes
            for number, result in enumerate(node.op.results)
            if 0 not in shape(result.type)
        }

    @cached_property
    def reads(self) -> Sequence[Read]:
        """The operands that are read from outside."""
        return [
            Read(node, number)
            for node in self.nodes
            for number, value in enumerate(node.values)
            if value not in self.producers
        ]

    @cached_property
    def _axes(self) -> tuple[dict[tuple[Node, int], int], list[int], set[int]]:
        """The class of each axis, the number of steps of each class, and the classes that are not split."""
        parent: dict[tuple[Node, int], tuple[Node, int]] = {}
        whole: list[tuple[Node, int]] = []

        def root(axis: tuple[Node, int]) -> tuple[Node, int]:
            while (above := parent[axis]) is not axis:
                axis = above
            return axis

        for node in self.nodes:
            for number in range(len(node.extents)):
                axis = (node, number)
                parent[axis] = axis
            whole += ((node, number) for number in node.whole_axes)
            for value, dims in zip(node.values, node.operand_dims, strict=True):
                if value not in self.producers:
                    continue
                producer, number = self.producers[value]
                for read, written in zip(dims, producer.result_dims[number], strict=True):
                    if read.is_aligned and written.is_aligned:
                        parent[root((node, read.moves[0][0]))] = root((producer, written.moves[0][0]))
                    else:
                        whole += ((node, moving) for moving, _ in read.moves)
                        whole += ((producer, moving) for moving, _ in written.moves)
        numbers: dict[tuple[Node, int], int] = {}
        extents: list[int] = []
        class_of: dict[tuple[Node, int], int] = {}
        for axis in parent:
            above = root(axis)
            if above not in numbers:
                numbers[above] = len(extents)
                extents.append(axis[0].extents[axis[1]])
            class_of[axis] = numbers[above]
        unsplit = {class_of[axis] for axis in whole}
        for node in self.nodes:
            # Blocks of a class along two axes of an operation would be those on the diagonal only.
            moving = [class_of[node, axis] for axis, extent in enumerate(node.extents) if extent > 1]
            unsplit |= {number for number in moving if moving.count(number) > 1}
        for output in self.outputs:
            node, number = self.producers[output]
            written = {class_of[node, axis] for dim in node.result_dims[number] for axis, _ in dim.moves}
            unsplit |= set(range(len(extents))) - written
        return class_of, extents, unsplit

    @property
    def extents(self) -> Sequence[int]:
        """The number of steps of each class."""
        return self._axes[1]

    @cached_property
    def split_classes(self) -> Sequence[int]:
        """The classes that blocks may split."""
        _, extents, unsplit = self._axes
        return [number for number, extent in enumerate(extents) if extent > 1 and number not in unsplit]

    def classes(self, node: Node) -> Sequence[int]:
        """Return the class of each axis of an operation."""
        return [self._axes[0][node, axis] for axis in range(len(node.extents))]

    def shape_of(self, node: Node, tile: Tile) -> Sequence[int]:
        """Return the block of an operation in a block of the group."""
        return [tile[number] for number in self.classes(node)]

    def can_be_computed(self, tile: Tile) -> bool:
        """Return whether the blocks of all operations can be computed one by one."""
        return all(node.can_be_computed(self.shape_of(node, tile)) for node in self._of_many_axes)

    def count(self, tile: Tile) -> int:
        """Return the number of blocks."""
        return prod(-(-extent // size) for extent, size in zip(self.extents, tile, strict=True))

    def memory(self, tile: Tile) -> int:
        """Return the bytes that the largest block takes: what it reads and writes, and its intermediate values."""
        return self._between(tile) + self._traffic(tile)

    @property
    def intermediate_bytes(self) -> int:
        """The bytes of the intermediate values of the largest block."""
        return self._between(self.tile)

    def _between(self, tile: Tile) -> int:
        live = [0] * (len(self.nodes) + 1)
        for (term, size), spans in self._intermediates.items():
            number = term.at(tile) * size
            for first, last in spans:
                live[first] += number
                live[last] -= number
        return max(accumulate(live))

    def seconds(self, tile: Tile) -> float:
        """Return the predicted time of all blocks."""
        flops = sum(term.at(tile) * each for term, each in self._work.items())
        seconds = SECONDS_PER_BLOCK + self._traffic(tile) / BYTES_PER_SECOND + flops / FLOPS_PER_SECOND
        return seconds * self.count(tile)

    @property
    def is_short(self) -> bool:
        """Return whether all blocks are predicted to take less time than XLA needs to optimize their program."""
        is_known = all(node.blocks is not None and not isinstance(node.op, WhileOp) for node in self.nodes)
        return is_known and self.seconds(self.tile) - SECONDS_PER_BLOCK * self.count(self.tile) < _OPTIMIZATION_SECONDS

    def _traffic(self, tile: Tile) -> int:
        return sum(term.at(tile) * size for term, size in self._accessed.items())

    @cached_property
    def _of_many_axes(self) -> Sequence[Node]:
        return [
            node
            for node in self.nodes
            if any(len(dim.moves) > 1 for dims in (*node.operand_dims, *node.result_dims) for dim in dims)
        ]

    @cached_property
    def _accessed(self) -> Mapping[_Term, int]:
        """The bytes of an element of each region that a block reads or writes."""
        regions = dict.fromkeys(
            (read.value, self._term(read.node, read.node.operand_dims[read.operand])) for read in self.reads
        )
        accessed: dict[_Term, int] = {}
        for output in self.outputs:
            node, number = self.producers[output]
            regions[output, self._term(node, node.result_dims[number])] = None
        for value, term in regions:
            accessed[term] = accessed.get(term, 0) + element_bytes(value)
        return accessed

    @cached_property
    def _intermediates(self) -> Mapping[tuple[_Term, int], Sequence[tuple[int, int]]]:
        """The operations between which each intermediate value is live, by its size."""
        last: dict[SSAValue, int] = {}
        for place, node in reversed([*enumerate(self.nodes)]):
            reader = last.get(node.op.results[0], place) if node.is_view else place
            for value in node.values:
                last[value] = max(reader, last.get(value, 0))
        spans: dict[tuple[_Term, int], list[tuple[int, int]]] = {}
        for place, node in enumerate(self.nodes):
            for result, dims in zip(node.op.results, node.result_dims, strict=True):
                if not node.is_view and result not in self.outputs and result in last:
                    size = (self._term(node, dims), element_bytes(result))
                    spans.setdefault(size, []).append((place, last[result] + 1))
        return spans

    @cached_property
    def _work(self) -> Mapping[_Term, float]:
        work: dict[_Term, float] = {}
        for node in self.computed:
            if node.blocks is not None:
                steps = [Dim(extent, 1, 1, ((axis, 1),), True) for axis, extent in enumerate(node.extents)]
                term = self._term(node, steps)
                work[term] = work.get(term, 0.0) + node.blocks.flops_per_step
        return work

    def _term(self, node: Node, dims: Iterable[Dim]) -> _Term:
        """Return the product of the extents of `dims`, which classes move."""
        classes = self.classes(node)
        return _Term(
            tuple(
                dim._replace(moves=tuple((classes[axis], stride) for axis, stride in dim.moves), is_aligned=True)
                for dim in dims
            )
        )


def element_bytes(value: SSAValue) -> int:
    """Return the bytes of an element of a tensor."""
    where = value.owner if isinstance(value.owner, Operation) else None
    return array_type(value.type, where)[1].itemsize
