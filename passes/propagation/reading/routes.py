"""What is to be visited again when a node changes whose change may reach further than its readers.

That is, for a data-flow edge, what uses the values that the edge joins; then what defines the value; then what uses it.
Uses come in the order of the value's use list, which starts with the latest. An operation in a region brings along
those around. All this is the reverse of the order in which Shardy visits, because its work list is a stack.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from sdy.dialect.interfaces import ShardableDataFlow, defining_op
from sdy.ir.fields import next_use, user_of
from sdy.ir.traits import is_terminator
from sdy.passes.common.call_graph import callee
from sdy.passes.propagation.reading.data_flow import DataFlow
from sdy.passes.propagation.reading.nodes import Nodes
from sdy.passes.propagation.snapshot import Route
from sdy.passes.propagation.step import OperationKind


@cache
def forwards_operands(operation: type[Operation]) -> bool:
    """Whether operands of such operations can be tensors of other operations too."""
    return (
        operation is CallOp
        or operation.has_trait(IsTerminator, value_if_unregistered=False)
        or operation.has_trait(ShardableDataFlow, value_if_unregistered=False)
    )


class Surroundings:
    """The operations around others where something is propagated, of those that were read so far."""

    def __init__(self, kinds: Sequence[OperationKind | None]) -> None:
        self.numbers: dict[int, int] = {}
        """The number of each operation that nests others, or is no mere reader of its operands, by its `id`."""
        self._kinds = kinds
        self._around: dict[int, tuple[int, ...]] = {}
        """What is around each block, by its `id`."""

    def around(self, block: Block | None) -> tuple[int, ...]:
        """The operations around `block`, the innermost first."""
        found = self._around.get(id(block))
        if found is None:
            operation = block and block.parent_op()
            found = () if operation is None else self.of(operation, self.numbers.get(id(operation)))
            self._around[id(block)] = found
        return found

    def of(self, operation: Operation, number: int | None) -> tuple[int, ...]:
        """`operation`, where something is propagated there, and those around it."""
        around = self.around(operation.parent)
        return around if number is None or self._kinds[number] is None else (number, *around)


class Routes:
    """Finds what the change of a node reaches."""

    def __init__(
        self,
        operations: Sequence[Operation],
        nodes: Nodes,
        surroundings: Surroundings,
        data_flow: DataFlow,
        erasable: Iterable[int],
    ) -> None:
        self._operations = operations
        self._nodes = nodes
        self._surroundings = surroundings
        self._data_flow = data_flow
        self._erasable = {id(operations[number]): number for number in erasable}
        """The numbers of the operations that may be erased, by their `id`."""

    def of(self, value: SSAValue, other_targets: Sequence[SSAValue]) -> tuple[Route, ...]:
        """The routes from the node that `value` holds the sharding of, and that joins `other_targets` to it."""
        found = _Found()
        for target in other_targets:
            self._follow_users(target, self._numbers_of_readers(target), found)
        numbers = self._numbers_of_readers(value)
        definer = defining_op(value)
        if definer is not None:
            self._add(definer, numbers, found, (definer,))
        self._follow_users(value, numbers, found)
        return tuple([Route(tuple(operations), *conditions) for operations, conditions in found.routes])

    def _follow_users(self, value: SSAValue, numbers: Mapping[int, int], found: "_Found") -> None:
        """Follow what uses `value`, once: a function that calls itself may pass on what it gets."""
        if id(value) in found.followed:
            return
        found.followed.add(id(value))
        use = value.first_use
        while use is not None:
            user = user_of(use)
            if forwards_operands(user.__class__):
                self._follow_forwarded(use, numbers, found)
            else:
                self._add(user, numbers, found, (user,))
            use = next_use(use)

    def _follow_forwarded(self, use: Use, numbers: Mapping[int, int], found: "_Found") -> None:
        user = user_of(use)
        edge = self._data_flow.edges.get((id(user), use.index))
        if edge is not None:
            self._add(edge, numbers, found, (user, edge))
            if id(edge) not in self._erasable:
                return
        if isinstance(user, CallOp):
            argument = callee(user, self._data_flow.symbols).args[use.index]
            self._follow_users(argument, self._numbers_of_readers(argument), found)
        elif isinstance(user, ReturnOp):
            for call in self._data_flow.calls.get(user.parent_op(), ()):
                result = call.res[use.index]
                self._follow_users(result, self._numbers_of_readers(result), found)
        elif (reached := user.parent_op() if is_terminator(user) else user) is not None:
            self._add(reached, numbers, found, (user,), () if edge is None else (edge,))

    def _add(
        self,
        operation: Operation,
        numbers: Mapping[int, int],
        found: "_Found",
        through: tuple[Operation, ...],
        instead_of: tuple[Operation, ...] = (),
    ) -> None:
        """Add a route to `operation`, and those around it; `numbers` are those of a value's readers."""
        number = numbers.get(id(operation))
        if number is None:
            number = self._surroundings.numbers.get(id(operation))
        conditions = (self._erasable_of(through), self._erasable_of(instead_of)) if self._erasable else _ALWAYS
        found.add(self._surroundings.of(operation, number), conditions)

    def _erasable_of(self, operations: Iterable[Operation]) -> tuple[int, ...]:
        """The numbers of those of `operations` that may be erased."""
        return tuple([self._erasable[id(op)] for op in operations if id(op) in self._erasable])

    def _numbers_of_readers(self, value: SSAValue) -> dict[int, int]:
        """The numbers of the operations that the sharding of `value` matters to, by their `id`."""
        node = self._nodes.by_id.get(id(value))
        return {} if node is None else {id(self._operations[number]): number for number in self._nodes.readers[node]}


_Conditions = tuple[tuple[int, ...], tuple[int, ...]]
"""As in `Route`: `through`, and `instead_of`."""

_ALWAYS: _Conditions = ((), ())


class _Found:
    """The routes found so far, those that follow each other with the same conditions as one."""

    def __init__(self) -> None:
        self.routes: list[tuple[dict[int, None], _Conditions]] = []
        self.followed: set[int] = set()
        """The values whose users were followed, by their `id`."""

    def add(self, operations: tuple[int, ...], conditions: _Conditions) -> None:
        if not operations:
            return
        if not self.routes or self.routes[-1][1] != conditions:
            self.routes.append(({}, conditions))
        last, _ = self.routes[-1]
        for operation in operations:
            last[operation] = None
