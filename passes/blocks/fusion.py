"""Fusion of operations into groups, and the shapes of their blocks, chosen together by predicted time.

A group is computed block by block, and intermediate values of a block are stored nowhere. The axes of its operations
that move along the same dimension of a value inside of the group are one *class*: a block has a range of each class. A
class that an operation reduces or reads in full is not split.

An operation joins the groups of the operations whose results it reads if their union takes less time than they do one
after the other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sdy.array_types import array_type
from sdy.diagnostics import DiagnosticError, op_error
from sdy.ir.shapes import shape
from sdy.passes.blocks.node import Dim, Node, is_generated

MOST_OPERATIONS = 64
"""The largest number of operations of a group: XLA compiles larger ones slowly."""

SECONDS_PER_BLOCK = 5e-5
BYTES_PER_SECOND = 2e9
FLOPS_PER_SECOND = 2e10

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


@dataclass(eq=False)
class Program:
    """The operations of a program.

    Attributes:
        nodes: The operations in program order.
        kept: The values that are stored whatever reads them, such as the results of the program.
        views: The operations in program order whose results are views of stored values, and are not computed.
    """

    nodes: Sequence[Node]
    kept: Collection[SSAValue]
    views: Sequence[Operation]

    @cached_property
    def producers(self) -> Mapping[SSAValue, Node]:
        """The operation that computes each value."""
        return {result: node for node in self.nodes for result in node.op.results}

    @cached_property
    def _views(self) -> Mapping[Node, frozenset[Node]]:
        """The views through which each operation reads."""
        found: dict[Node, frozenset[Node]] = {}
        for node in self.nodes:
            views = [self.producers[value] for value in node.values if value in self.producers]
            direct = [view for view in views if view.is_view]
            found[node] = frozenset(direct).union(*(found[view] for view in direct))
        return found

    @cached_property
    def _readers(self) -> Mapping[SSAValue, Collection[Node]]:
        """The operations that read each value, directly or through views."""
        found: dict[SSAValue, set[Node]] = {}
        for node in self.nodes:
            if not node.is_view:
                for reader in (node, *self._views[node]):
                    for value in reader.values:
                        found.setdefault(value, set()).add(node)
        return found

    def group(self, computed: Collection[Node]) -> Group:
        """Return the group of these operations and the views that they read through."""
        nodes = {*computed}.union(*(self._views[node] for node in computed))
        results = [result for node in computed for result in node.op.results]
        outputs = [
            result
            for result in results
            if 0 not in shape(result.type)
            and (result in self.kept or not nodes.issuperset(self._readers.get(result, ())))
        ]
        return Group(sorted(nodes, key=lambda node: node.position), outputs)

    @cached_property
    def sources(self) -> Mapping[Node, Collection[Node]]:
        """The operations whose results each operation reads, directly or through views that its group computes."""
        found: dict[Node, Collection[Node]] = {}
        for node in self.nodes:
            producers = (self.producers.get(value) for value in self._read(node))
            found[node] = {producer for producer in producers if producer is not None and not producer.is_view}
        return found

    @cached_property
    def stored_sources(self) -> Mapping[Node, Set[Node]]:
        """The operations whose stored results each operation reads through views: they must be in other groups."""
        views: dict[SSAValue, Sequence[SSAValue]] = {result: op.operands for op in self.views for result in op.results}
        found: dict[Node, Set[Node]] = {}
        for node in self.nodes:
            pending = [operand for value in self._read(node) for operand in views.get(value, ())]
            sources: set[Node] = set()
            seen: set[SSAValue] = set()
            while pending:
                value = pending.pop()
                if value in seen:
                    continue
                seen.add(value)
                producer = self.producers.get(value)
                if producer is not None and not producer.is_view:
                    sources.add(producer)
                else:
                    pending += views.get(value, ()) if producer is None else producer.values
            found[node] = sources
        return found

    def moved(self, node: Node) -> Iterable[SSAValue]:
        """Return the values that an operation reads from operations that only move elements and its group computes."""
        producers = ((value, self.producers.get(value)) for value in node.values)
        return [value for value, each in producers if each is not None and each.is_view and not is_generated(each.op)]

    def _read(self, node: Node) -> Iterable[SSAValue]:
        """Return the values that an operation and the views in its group read."""
        return (value for reader in (node, *self._views[node]) for value in reader.values)


class _Fusion:
    """Groups of operations: each operation joins, in program order, the groups of those that it reads."""

    def __init__(self, program: Program, choose: ChooseTile):
        self._program = program
        self._choose = choose
        self._group_of: dict[Node, Group] = {}
        self._upstream: dict[Group, int] = {}
        """The operations that each group contains or depends on, as bits of their positions."""

    def add(self, node: Node, group: Group) -> None:
        """Add an operation, in a group of its own, to the groups of those that it reads."""
        if node.blocks is not None:
            for producer in sorted(self._program.sources[node], key=lambda source: -source.position):
                if producer.blocks is not None and producer not in group.computed:
                    group = self._joined(group, self._group_of[producer]) or group
        for member in group.computed:
            self._upstream.pop(self._group_of.get(member, group), None)
            self._group_of[member] = group
        self._update_upstream(group)

    def _update_upstream(self, group: Group) -> None:
        """Compute what a new group depends on, and add it to the groups that depend on the new one."""
        own = upstream = _bits(group.computed)
        for other in self._read_by(group.computed):
            upstream |= self._upstream[other]
        self._upstream[group] = upstream
        for other, positions in self._upstream.items():
            if positions & own:
                self._upstream[other] = positions | upstream

    def groups(self) -> Sequence[Group]:
        """Return the groups in topological order."""
        ordered: dict[Group, None] = {}
        for node in self._group_of:
            pending = [(self._group_of[node], False)]
            while pending:
                group, is_ready = pending.pop()
                if is_ready:
                    ordered[group] = None
                elif group not in ordered:
                    pending.append((group, True))
                    pending += ((other, False) for other in sorted(self._read_by(group.computed), key=_position))
        return list(ordered)

    def _joined(self, group: Group, other: Group) -> Group | None:
        """Return the union of two groups; None if it is too large or slow, or would depend on its own results."""
        members = {*group.computed, *other.computed}
        if len(members) > MOST_OPERATIONS or self._depends_on_itself(members):
            return None
        union = self._program.group(members)
        return union if self._choose(union) and union.time <= group.time + other.time else None

    def _depends_on_itself(self, members: Set[Node]) -> bool:
        """Return whether `members` read results of their own from storage, or of a group that depends on `members`."""
        if any(not members.isdisjoint(self._program.stored_sources[node]) for node in members):
            return True
        own = _bits(members)
        return any(self._upstream[group] & own for group in self._read_by(members))

    def _read_by(self, members: Collection[Node]) -> set[Group]:
        """Return the other groups whose results `members` read."""
        sources = {
            source
            for node in members
            for each in (self._program.sources, self._program.stored_sources)
            for source in each[node]
        }
        return {self._group_of[source] for source in sources.difference(members)}


def _bits(members: Iterable[Node]) -> int:
    """Return the set of the positions of operations as bits."""
    return sum(1 << node.position for node in members)


def _position(group: Group) -> int:
    return group.nodes[0].position


class UnfitBlocksError(DiagnosticError):
    """The smallest blocks of operations do not fit; the location is the first of them.

    Attributes:
        nodes: The operations.
    """

    def __init__(self, nodes: Sequence[Node], smallest: int, limit: int):
        super().__init__(
            op_error(
                nodes[0].op,
                f"its smallest blocks take {smallest:,} bytes, more than the limit of {limit:,}; "
                f"they fit with --block-bytes {smallest} or a --memory-limit of four times as much",
            ).diagnostic
        )
        self.nodes = nodes


def fuse(program: Program, choose: ChooseTile, limit: int = 0) -> Sequence[Group]:
    """Return the groups of a program in topological order, with the shapes of their blocks.

    Args:
        program: The operations.
        choose: Chooses the blocks of a group.
        limit: The bytes of a block, for messages.

    Raises:
        UnfitBlocksError: The smallest blocks of operations do not fit.
    """
    singles = {node: program.group([node]) for node in program.nodes if not node.is_view}
    unfit = [node for node, group in singles.items() if not choose(group)]
    if unfit:
        group = singles[unfit[0]]
        raise UnfitBlocksError(unfit, group.memory(group.tile), limit)
    fusion = _Fusion(program, choose)
    for node, group in singles.items():
        fusion.add(node, group)
    return fusion.groups()
