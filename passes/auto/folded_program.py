"""A program with its repeated parts folded together, so that what is asked of it takes as long as one of them.

A deep model is the same layer many times over. Operations are equal that have one key and work on equal values; values
are equal that have one type and are made and used by equal operations. What is equal is one operation, or one node, of
the folded program, with how often there is it: the layers become a loop around one layer. What is near the ends of the
stack, and so not equal to what is between, stays by itself.

As a program folds, so does its snapshot, which is solved like any other.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.ops import DataFlowEdgeOp, NamedComputationOp
from sdy.ir.operation_key import MemoizedByKey
from sdy.ir.traits import is_terminator
from sdy.passes.auto.lifetimes import Alive, most_alive
from sdy.passes.auto.origins import number_of
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.loops import loop_trips, loops_around
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.reading.reader import read
from sdy.passes.propagation.snapshot import UNSHARDABLE, DeadCode, Return, Sibling, Snapshot
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.work import Work, work_of

_ROUNDS = 4
"""So many operations away what two values are made of, and used by, is to be equal for them to be."""

_ROUNDS_OF_LIKENESS = 1
"""So many operations away, for them to be alike: the parameters of the first layer and of those in between."""

_NO_DEAD_CODE = DeadCode((), {}, {}, {}, (), (), {})


@dataclass(frozen=True, eq=False)
class FoldedOperation:
    """Equal operations of a program."""

    operation: Operation
    """One of them."""
    key: int
    """Operations are equal but for the values that they work on if they have one key."""
    work: Work
    nodes: tuple[int, ...]
    """The nodes of its operands and results."""
    times: int
    """How many of them run in a step."""
    span: tuple[int, int]
    """The places of the first and the last of them in the program."""


@dataclass(frozen=True, eq=False)
class FoldedProgram:
    """A module as the search sees it."""

    module: ModuleOp
    snapshot: Snapshot
    """That of the folded program."""
    operations: Sequence[FoldedOperation]
    values: Sequence[SSAValue | None]
    """One of the values of each node."""
    arguments: Mapping[int, tuple[int, ...]]
    """The arguments of the main function, by their index, that each node stands for."""
    likeness: Mapping[int, int]
    """A number for each node, one for all that are made and used alike nearby, if not further away."""
    state: Mapping[int, int]
    """The arguments whose next value the main function gives back, and which result that is, by their index."""
    returned: Mapping[int, tuple[int, int]]
    """The nodes of what is returned as the next value of an argument's node, and of the result; by that node."""
    origins: Mapping[int, tuple[int, ...]]
    """The numbers of the results that each node stands for, of those that have one."""
    alive: Alive
    """How many values of each node are alive at the times that may need the most memory."""


def fold(module: ModuleOp) -> FoldedProgram:
    """Fold `module`, in which calls are inlined and data flow is explicit."""
    snapshot, binding = read(module)
    return _Folding(module, snapshot, binding).program()


class _Folding:
    def __init__(self, module: ModuleOp, snapshot: Snapshot, binding: Binding) -> None:
        self._module = module
        self._snapshot = snapshot
        self._binding = binding
        self._places = {
            id(op): place for place, op in enumerate(binding.operations) if place not in snapshot.dead_code.sizes
        }
        """The place of each operation that propagation does not erase, by its `id`."""
        self._keys = self._find_keys()
        self._nodes = [self._nodes_of(op) for op in binding.operations]
        self._classes = self._find_classes()
        self._state = find_state(main_function(module))
        self._returned = self._find_returned()

    def program(self) -> FoldedProgram:
        values: list[SSAValue | None] = [None] * (max(self._classes) + 1)
        for value, node in zip(self._binding.values, self._classes, strict=True):
            if values[node] is None:
                values[node] = value
        arguments: dict[int, list[int]] = defaultdict(list)
        for index, argument in enumerate(main_function(self._module).args):
            arguments[self._class_of(argument)].append(index)
        return FoldedProgram(
            self._module,
            self._folded_snapshot(len(values)),
            self._folded_operations(),
            values,
            {node: tuple(indices) for node, indices in arguments.items()},
            {self._classes[node]: likeness for node, likeness in enumerate(self._likeness)},
            self._state,
            self._returned,
            self._find_origins(),
            most_alive(self._module, len(values), self._class_of, self._places),
        )

    def _class_of(self, value: SSAValue) -> int:
        node = self._binding.node_of(value)
        return UNSHARDABLE if node is None else self._classes[node]

    def _find_keys(self) -> Sequence[int]:
        numbers = count()
        number_of = MemoizedByKey[int](lambda op: next(numbers))
        return [number_of(op) for op in self._binding.operations]

    def _nodes_of(self, op: Operation) -> tuple[int, ...]:
        return tuple([self._binding.nodes.get(id(value), UNSHARDABLE) for value in (*op.operands, *op.results)])

    def _find_classes(self) -> Sequence[int]:
        """The class of each node, numbered as they are met; node 0 is one of its own."""
        snapshot = self._snapshot
        arguments = {node for function in snapshot.functions for node in function.arguments}
        self._likeness: Sequence[int] = ()
        classes = _numbered(
            (value and value.type, node in arguments, snapshot.given.get(node))
            for node, value in enumerate(self._binding.values)
        )
        # The place at which a value is returned says nothing of it.
        around_values = [
            (key, nodes)
            for op, key, nodes in zip(self._binding.operations, self._keys, self._nodes, strict=True)
            if nodes and not is_terminator(op) and id(op) in self._places
        ]
        for done in range(_ROUNDS):
            if done == _ROUNDS_OF_LIKENESS:
                self._likeness = classes
            around: list[list[tuple[int, int]]] = [[] for _ in classes]
            kinds = _numbered((key, *[classes[node] for node in nodes]) for key, nodes in around_values)
            for kind, (_, nodes) in zip(kinds, around_values, strict=True):
                for position, node in enumerate(nodes):
                    around[node].append((kind, position))
            classes = _numbered((own, *sorted(each)) for own, each in zip(classes, around, strict=True))
        own: list[Hashable] = [*classes]
        for _, (value, result) in snapshot.returns:
            own[result] = "returned", classes[value], snapshot.given.get(result)
        return [UNSHARDABLE, *_numbered(own[1:], first=1)]

    def _find_returned(self) -> Mapping[int, tuple[int, int]]:
        main = main_function(self._module)
        assert self._snapshot.main is not None
        results = self._snapshot.functions[self._snapshot.main].results
        terminator = main.get_return_op()
        assert terminator is not None
        return {
            self._class_of(main.args[argument]): (
                self._class_of(terminator.operands[result]),
                self._classes[results[result]],
            )
            for argument, result in self._state.items()
        }

    def _find_origins(self) -> Mapping[int, tuple[int, ...]]:
        origins: dict[int, dict[int, None]] = defaultdict(dict)
        for op in self._binding.operations:
            number = number_of(op)
            if number is not None and id(op) in self._places:
                (result,) = op.results
                node = self._binding.nodes.get(id(result), UNSHARDABLE)
                if self._binding.values[node] is result:
                    origins[self._classes[node]][number] = None
        return {node: tuple(numbers) for node, numbers in origins.items()}

    def _folded_snapshot(self, num_nodes: int) -> Snapshot:
        old, classes = self._snapshot, self._classes
        steps = dict.fromkeys(
            (kind, tuple([classes[node] for node in tensors]))
            for number, (kind, tensors) in enumerate(zip(old.kinds, old.tensors, strict=True))
            if kind is not None and number not in old.dead_code.sizes
        )
        readers: list[dict[int, None]] = [{} for _ in range(num_nodes)]
        for number, (_, tensors) in enumerate(steps):
            for node in tensors:
                readers[node][number] = None
        return Snapshot(
            old.meshes,
            {classes[node]: sharding for node, sharding in old.given.items()},
            [kind for kind, _ in steps],
            [tensors for _, tensors in steps],
            [tuple(each) for each in readers],
            {UNSHARDABLE: ()},
            {
                classes[node]: tuple([Sibling(classes[each.node], each.rank) for each in siblings])
                for node, siblings in old.siblings.items()
            },
            {
                classes[node]: tuple(dict.fromkeys(classes[each] for each in group))
                for node, group in old.groups.items()
            },
            (),
            None,
            tuple(self._folded_returns()),
            _NO_DEAD_CODE,
        )

    def _folded_returns(self) -> Iterable[Return]:
        """What is returned, tied to the results, and these to the arguments whose next value they are."""
        folded = dict.fromkeys(
            Return(kind, (self._classes[value], self._classes[result]))
            for kind, (value, result) in self._snapshot.returns
        )
        kinds = {result: kind for kind, (_, result) in folded}
        ties = [
            Return(kinds[result], (argument, result))
            for argument, (_, result) in self._returned.items()
            if result in kinds
        ]
        return [*folded, *ties]

    def _folded_operations(self) -> Sequence[FoldedOperation]:
        first: dict[_Folded, Operation] = {}
        times: dict[_Folded, int] = defaultdict(int)
        last: dict[_Folded, Operation] = {}
        for op, key, nodes in zip(self._binding.operations, self._keys, self._nodes, strict=True):
            if id(op) in self._places and _has_cost(op):
                folded = key, tuple([self._classes[node] for node in nodes])
                first.setdefault(folded, op)
                last[folded] = op
                times[folded] += prod(loop_trips(loop) or 1 for loop in loops_around(op))
        fused = FusedValues()
        return [
            FoldedOperation(
                op,
                key,
                work_of(op, fused),
                nodes,
                times[key, nodes],
                (self._places[id(op)], self._places[id(last[key, nodes])]),
            )
            for (key, nodes), op in first.items()
        ]


def _numbered(values: Iterable[Hashable], first: int = 0) -> list[int]:
    """A number for each value, equal ones for equal values, in the order in which they are met."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, first + len(numbers)) for value in values]


_Folded = tuple[int, tuple[int, ...]]
"""By which operations are equal: their keys, and the nodes of their operands and results."""


def _has_cost(op: Operation) -> bool:
    """Whether `op` takes time itself: not what joins others, or is part of one that is a whole, as a sum's body is."""
    around = op.parent_op()
    return (
        bool(op.results)
        and not is_terminator(op)
        and not isinstance(op, DataFlowEdgeOp | NamedComputationOp)
        and op.name != "stablehlo.while"
        and around is not None
        and around.name in _AROUND
    )


_AROUND = {
    "func.func",
    "sdy.named_computation",
    "sdy.manual_computation",
    "stablehlo.while",
    "stablehlo.case",
    "stablehlo.if",
}
"""Operations the operations in which run one by one."""
