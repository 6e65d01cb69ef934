"""Routes: the operations to revisit after a change of a node that affects more than the node's readers.

For a data-flow edge, these are the users of the other values that the edge joins, then the definer of the value, then
its users. Users follow the order of the value's use list, which begins with the latest use. Each operation is followed
by its enclosing operations. This is the reverse of Shardy's order of visits, because its worklist is a stack.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from sdy.dialect.interfaces import ShardableDataFlow, defining_op
from sdy.ir.fast_access import is_terminator, next_use, user_of
from sdy.passes.common.call_graph import callee
from sdy.passes.propagation.reading.data_flow import DataFlow
from sdy.passes.propagation.reading.nodes import Nodes
from sdy.passes.propagation.snapshot import Route
from sdy.passes.propagation.step import OperationKind


@cache
def forwards_operands(operation: type[Operation]) -> bool:
    """Return whether operations of this class pass operands on to other operations' steps."""
    return (
        operation is CallOp
        or operation.has_trait(IsTerminator, value_if_unregistered=False)
        or operation.has_trait(ShardableDataFlow, value_if_unregistered=False)
    )


class EnclosingOperations:
    """The enclosing operations through which shardings propagate, of the blocks read so far."""

    def __init__(self, kinds: Sequence[OperationKind | None]) -> None:
        self.numbers: dict[int, int] = {}
        """The number of each operation that has regions or is not plain, by the operation's `id`."""
        self._kinds = kinds
        self._of_blocks: dict[int, tuple[int, ...]] = {}
        """The enclosing operations of each block, by the block's `id`."""

    def of_block(self, block: Block | None) -> tuple[int, ...]:
        """Return the operations that enclose `block`, the innermost first."""
        enclosing = self._of_blocks.get(id(block))
        if enclosing is None:
            operation = block and block.parent_op()
            enclosing = () if operation is None else self.including(operation, self.numbers.get(id(operation)))
            self._of_blocks[id(block)] = enclosing
        return enclosing

    def including(self, operation: Operation, number: int | None) -> tuple[int, ...]:
        """Return `operation`, if shardings propagate through it, and the operations that enclose it."""
        enclosing = self.of_block(operation.parent)
        return enclosing if number is None or self._kinds[number] is None else (number, *enclosing)


class Routes:
    """Computes the routes from nodes."""

    def __init__(
        self,
        operations: Sequence[Operation],
        nodes: Nodes,
        enclosing: EnclosingOperations,
        data_flow: DataFlow,
        erasable: Iterable[int],
    ) -> None:
        self._operations = operations
        self._nodes = nodes
        self._enclosing = enclosing
        self._data_flow = data_flow
        self._erasable = {id(operations[number]): number for number in erasable}
        """The numbers of the operations that may be erased, by the operation's `id`."""

    def of(self, value: SSAValue, other_targets: Sequence[SSAValue]) -> tuple[Route, ...]:
        """Return the routes from the node of `value`.

        Args:
            value: The primary value of the node.
            other_targets: The other values that the node joins, if it is a data-flow edge.
        """
        routes = _RouteBuilder()
        for target in other_targets:
            self._follow_users(target, self._numbers_of_readers(target), routes)
        numbers = self._numbers_of_readers(value)
        definer = defining_op(value)
        if definer is not None:
            self._add(definer, numbers, routes, (definer,))
        self._follow_users(value, numbers, routes)
        return tuple([Route(tuple(operations), *conditions) for operations, conditions in routes.routes])

    def _follow_users(self, value: SSAValue, numbers: Mapping[int, int], routes: "_RouteBuilder") -> None:
        """Add the users of `value`, once: recursive functions may pass a value to themselves."""
        if id(value) in routes.followed:
            return
        routes.followed.add(id(value))
        use = value.first_use
        while use is not None:
            user = user_of(use)
            if forwards_operands(user.__class__):
                self._follow_forwarded(use, numbers, routes)
            else:
                self._add(user, numbers, routes, (user,))
            use = next_use(use)

    def _follow_forwarded(self, use: Use, numbers: Mapping[int, int], routes: "_RouteBuilder") -> None:
        user = user_of(use)
        edge = self._data_flow.edges.get((id(user), use.index))
        if edge is not None:
            self._add(edge, numbers, routes, (user, edge))
            if id(edge) not in self._erasable:
                return
        if isinstance(user, CallOp):
            argument = callee(user, self._data_flow.symbols).args[use.index]
            self._follow_users(argument, self._numbers_of_readers(argument), routes)
        elif isinstance(user, ReturnOp):
            for call in self._data_flow.calls.get(user.parent_op(), ()):
                result = call.res[use.index]
                self._follow_users(result, self._numbers_of_readers(result), routes)
        elif (reached := user.parent_op() if is_terminator(user) else user) is not None:
            self._add(reached, numbers, routes, (user,), () if edge is None else (edge,))

    def _add(
        self,
        operation: Operation,
        numbers: Mapping[int, int],
        routes: "_RouteBuilder",
        through: tuple[Operation, ...],
        instead_of: tuple[Operation, ...] = (),
    ) -> None:
        """Add a route to `operation` and its enclosing operations; `numbers` are the numbers of a value's readers."""
        number = numbers.get(id(operation))
        if number is None:
            number = self._enclosing.numbers.get(id(operation))
        conditions = (self._erasable_of(through), self._erasable_of(instead_of)) if self._erasable else _ALWAYS
        routes.add(self._enclosing.including(operation, number), conditions)

    def _erasable_of(self, operations: Iterable[Operation]) -> tuple[int, ...]:
        """Return the numbers of the `operations` that may be erased."""
        return tuple([self._erasable[id(op)] for op in operations if id(op) in self._erasable])

    def _numbers_of_readers(self, value: SSAValue) -> dict[int, int]:
        """Return the numbers of the readers of the node of `value`, by the operation's `id`."""
        node = self._nodes.by_id.get(id(value))
        return {} if node is None else {id(self._operations[number]): number for number in self._nodes.readers[node]}


_Conditions = tuple[tuple[int, ...], tuple[int, ...]]
"""The fields `through` and `instead_of` of a `Route`."""

_ALWAYS: _Conditions = ((), ())


class _RouteBuilder:
    """Collects routes, and merges consecutive routes with the same conditions."""

    def __init__(self) -> None:
        self.routes: list[tuple[dict[int, None], _Conditions]] = []
        self.followed: set[int] = set()
        """The values whose users were added, by the value's `id`."""

    def add(self, operations: tuple[int, ...], conditions: _Conditions) -> None:
        if not operations:
            return
        if not self.routes or self.routes[-1][1] != conditions:
            self.routes.append(({}, conditions))
        last, _ = self.routes[-1]
        for operation in operations:
            last[operation] = None
