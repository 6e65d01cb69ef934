"""Fusion of operations into groups.

An operation joins the groups of the operations whose results it reads if their union takes less time than they do one
after the other, each with the blocks that are best for it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import DiagnosticError, op_error
from sdy.ir.shapes import shape
from sdy.passes.blocks.block_shapes import ChooseTile
from sdy.passes.blocks.group import Group
from sdy.passes.blocks.node import Node, is_generated

MOST_OPERATIONS = 64
"""The largest number of operations of a group: XLA compiles larger ones slowly."""


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
        members = {*computed}.union(*(self._views[node] for node in computed))
        nodes = sorted(members, key=lambda node: node.position)
        outputs = [
            result
            for node in nodes
            for result in node.op.results
            if not node.is_view
            and 0 not in shape(result.type)
            and (result in self.kept or not members.issuperset(self._readers.get(result, ())))
        ]
        return Group(nodes, outputs)

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
