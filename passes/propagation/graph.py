"""The compact graph that propagation works on.

Operations are numbered in the order of the text, from the module on, each before what is in it. *Nodes* are the places
that hold a sharding: a result, a function's argument or result, or the data-flow edge that holds the one sharding of
all the values that it joins. Node 0 stands for the values that cannot have a sharding, such as the arguments of a
reduction's body.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.traits import IsTerminator
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from sdy.dialect.interfaces import ShardableDataFlow, data_flow_of_source, defining_op
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.ir.editing import erase
from sdy.ir.fields import next_use
from sdy.ir.shapes import rank
from sdy.ir.traits import is_terminator
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import callee
from sdy.passes.common.data_flow_edges import edge_of
from sdy.passes.common.symbols import Symbols
from sdy.passes.propagation.kinds import OperationKinds
from sdy.passes.propagation.step import Kind
from sdy.rules import ByRule
from sdy.sharding import TensorSharding

UNSHARDABLE = 0
"""The node of the values that cannot have a sharding."""


class Signature(NamedTuple):
    """The nodes of a function's arguments and results."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]


class Return(NamedTuple):
    """A value that the main function returns, tied to the function's result."""

    kind: Kind
    tensors: tuple[int, int]


class Erased(NamedTuple):
    """What erasing an operation has touched."""

    neighbours: list[int]
    """Operations that define an operand which now has one user at most, to be visited again, in the order of MLIR."""
    left_alone: list[int]
    """The operations that now are the only user of an operand, which can let them take part earlier."""


@dataclass
class Graph:
    """Nodes and operations; lists are indexed by their numbers."""

    operation_kinds: ByRule[OperationKinds]
    symbols: Symbols
    nodes: dict[int, int] = field(default_factory=dict[int, int])
    """The node that holds the sharding of each value, by the value's `id`, as to hash a value is slow."""
    places: list[SSAValue | None] = field(default_factory=lambda: [None])
    """The value that each node holds the sharding of, first of all; None for a function's result, and node 0."""
    attributes: list[dict[str, Attribute] | None] = field(default_factory=lambda: [None])
    """The attributes in which an operation keeps the sharding of each node, and no other; None where none does."""
    joined: list[SSAValue] = field(default_factory=list[SSAValue])
    """The other values in `nodes`, whose sharding the place of another value holds, or none."""
    given: dict[int, TensorSharding] = field(default_factory=dict[int, TensorSharding])
    """The shardings that nodes had when the module was read."""
    readers: list[list[int]] = field(default_factory=lambda: [[]])
    """The operations that the sharding of each node matters to; one may be there more than once."""
    siblings: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """The nodes of values that are defined with a node's, where there are several: they keep their shardings together,
    so that one cannot have a sharding without the others."""
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """The nodes that are always to have the sharding of a node, itself included."""
    operations: Sequence[Operation] = ()
    """The module, and all that is in it."""
    numbers_in_flow: dict[int, int] = field(default_factory=dict[int, int])
    """The number of each operation that nests others, or is no mere reader of its operands, by the operation's `id`."""
    kinds: list[Kind | None] = field(default_factory=list[Kind | None])
    """What a step does at each operation; None where nothing is propagated."""
    tensors: list[Sequence[int]] = field(default_factory=list[Sequence[int]])
    """The nodes of each operation's operands, then of its results."""
    other_targets: dict[int, Sequence[SSAValue]] = field(default_factory=dict[int, Sequence[SSAValue]])
    """The values besides its owner whose sharding a node holds, where it is that of a data-flow edge with several."""
    signatures: dict[FuncOp, Signature] = field(default_factory=dict[FuncOp, Signature])
    """The nodes of each function's arguments and results."""
    main: FuncOp | None = None
    """The main function; None where there are no functions."""
    returns: list[Return] = field(default_factory=list[Return])
    dead: set[int] = field(default_factory=set[int])
    """The operations that nobody would miss."""
    calls: dict[Operation | None, list[CallOp]] = field(default_factory=dict[Operation | None, list[CallOp]])
    """The calls of each function."""
    given_rules: list[Operation] = field(default_factory=list[Operation])
    """The operations that had a rule in the module."""
    winding: set[int] = field(default_factory=set[int])
    """The nodes whose change may reach other operations than those that it matters to."""

    _around_blocks: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    """What is around each block, by its `id`."""

    @cached_property
    def _all_numbers(self) -> dict[int, int]:
        """The number of each operation that was not erased, by the operation's `id`, as to hash one is slow."""
        return dict(zip(map(id, self.operations), range(len(self.operations)), strict=True))

    def node_of(self, value: SSAValue) -> int | None:
        """The node that holds the sharding of `value`, None where the module had no such value when it was read."""
        return self.nodes.get(id(value))

    def rank(self, node: int) -> int:
        """The number of dimensions of what `node` holds the sharding of."""
        place = self.places[node]
        assert place is not None
        return rank(place.type)

    def group(self, node: int) -> tuple[int, ...]:
        """`node`, and then the others that are always to have its sharding."""
        members = self.groups.get(node)
        return (node, *(member for member in members if member != node)) if members else (node,)

    def reached_from(self, node: int) -> tuple[int, ...]:
        """The operations to be visited again when the sharding of `node` changes, in the order of Shardy.

        That order is the reverse of the order of visits, because the work list is a stack. It is, for a data-flow edge,
        what uses the values that the edge joins; then what defines the value; then what uses it. Uses come in the order
        of the value's list of uses, which starts with the latest. An operation in a region brings along those around.
        """
        place = self.places[node]
        reached: dict[int, None] = {}
        followed: set[int] = set()
        if place is not None:
            for target in self.other_targets.get(node, ()):
                self._reach_users(target, reached, followed)
            self._reach(defining_op(place), self._numbers_of_readers(place), reached)
            self._reach_users(place, reached, followed)
        return tuple(reached)

    def _reach(self, operation: Operation | None, numbers: dict[int, int], reached: dict[int, None]) -> None:
        """Add `operation`, and those around it, to what is `reached`; `numbers` are those of a value's readers."""
        if operation is None:
            return
        number = numbers.get(id(operation), self.numbers_in_flow.get(id(operation)))
        if number is not None and self.kinds[number] is not None:
            reached[number] = None
        reached.update(self._around(operation.parent))

    def _reach_users(self, value: SSAValue, reached: dict[int, None], followed: set[int]) -> None:
        """Add what uses `value` to what is `reached`, once: a function that calls itself may pass on what it gets."""
        if id(value) in followed:
            return
        followed.add(id(value))
        numbers = self._numbers_of_readers(value)
        use = value.first_use
        while use is not None:
            user = use.operation
            if not leads_elsewhere(user.__class__):
                self._reach(user, numbers, reached)
            elif (edge := _source_edge(use)) is not None:
                self._reach(edge, numbers, reached)
            elif isinstance(user, CallOp):
                self._reach_users(callee(user, self.symbols).args[use.index], reached, followed)
            elif isinstance(user, ReturnOp):
                for call in self.calls.get(user.parent_op(), ()):
                    self._reach_users(call.res[use.index], reached, followed)
            else:
                self._reach(user.parent_op() if is_terminator(user) else user, numbers, reached)
            use = next_use(use)

    def _numbers_of_readers(self, value: SSAValue) -> dict[int, int]:
        """The numbers of the operations that the sharding of `value` matters to, by their `id`."""
        node = self.node_of(value)
        return {} if node is None else {id(self.operations[number]): number for number in self.readers[node]}

    def is_in_what_propagates(self, block: Block | None) -> bool:
        """Whether something is propagated at an operation around `block`."""
        return bool(self._around(block))

    def _around(self, block: Block | None) -> dict[int, None]:
        """The operations around `block`, the innermost first, where something is propagated."""
        found = self._around_blocks.get(id(block))
        if found is None:
            found = dict[int, None]()
            operation = block and block.parent_op()
            if operation is not None and (number := self.numbers_in_flow.get(id(operation))) is not None:
                if self.kinds[number] is not None:
                    found[number] = None
                found.update(self._around(operation.parent))
            self._around_blocks[id(block)] = found
        return found

    def in_order_of_shardy(self, node: int, operations: Sequence[int]) -> list[int]:
        """`operations`, some of those that `node` matters to, in the order of `reached_from`.

        For nodes whose change matters to their readers alone, as most do; in less time.
        """
        place = self.places[node]
        assert place is not None
        numbers = {id(self.operations[number]): number for number in operations}
        definer = numbers.pop(id(place.owner), None)
        ordered = [] if definer is None else [definer]
        use = place.first_use
        while use is not None and numbers:
            number = numbers.pop(id(use.operation), None)
            if number is not None:
                ordered.append(number)
            use = next_use(use)
        return ordered

    def erase(self, number: int) -> Erased:
        """Erase a dead operation from the module."""
        operation = self.operations[number]
        defining: dict[Operation, None] = {}
        operands: dict[SSAValue, None] = {}
        for op in reversed(operations(operation)):
            erased = self._all_numbers.pop(id(op))
            self.kinds[erased] = None
            self.dead.discard(erased)
            for operand in op.operands:
                operands[operand] = None
                users = {use.operation for use in operand.uses}
                if isinstance(operand.owner, Operation) and len(users - {op}) < 2:
                    defining[operand.owner] = None
            op.operands = ()
        erase(operation)
        neighbours = [self._all_numbers[id(op)] for op in defining if id(op) in self._all_numbers]
        self.dead.update(number for number in neighbours if is_dead(self.operations[number]))
        return Erased(neighbours, [user for operand in operands for user in self._left_alone_with(operand)])

    def _left_alone_with(self, operand: SSAValue) -> Iterator[int]:
        user = operand.get_user_of_unique_use()
        number = None if user is None else self._all_numbers.get(id(user))
        if user is None or number is None:
            return
        kinds = self.operation_kinds.of(user)
        if kinds is not None and self.kinds[number] is not None:
            self.kinds[number] = kinds.of(user)
            yield number


def is_dead(operation: Operation) -> bool:
    """Whether nobody would miss `operation`: no result is used, and it does nothing else."""
    for result in operation.results:
        if result.first_use is not None:
            return False
    # Most of what has no result is a terminator, which traits that are remembered tell in less time.
    return not is_terminator(operation) and would_be_trivially_dead(operation)


@cache
def leads_elsewhere(operation: type[Operation]) -> bool:
    """Whether operands of such operations can be tensors of other operations too."""
    return (
        operation is CallOp
        or operation.has_trait(IsTerminator, value_if_unregistered=False)
        or operation.has_trait(ShardableDataFlow, value_if_unregistered=False)
    )


def _source_edge(use: Use) -> DataFlowEdgeOp | None:
    """The data-flow edge that has `use` among its sources.

    As in Shardy, the operands of a manual or named computation do not count: a change of theirs reaches the edge inside
    only when all operations are visited in the next round, and ties depend on that.
    """
    found = data_flow_of_source(use)
    if found is None:
        return None
    flow, operation = found
    owner = flow.edge_owner_from_source(operation, use)
    return None if isinstance(owner, BlockArgument) else edge_of(owner)
