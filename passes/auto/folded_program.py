"""Folded programs: repeated layers merged into one, so that analyses take time proportional to one layer.

Folding computes equivalence classes by partition refinement. Operations are equal if they have equal keys and equal
operands and results. Values are equal if they have the same type and equal definitions and uses, up to a distance of
some operations, at least `_LEAST_ROUNDS`. Each class becomes one operation or one node of the folded program, with its
number of occurrences. Layers at the ends of a stack differ from those in between and remain separate.

The propagation snapshot of the program is folded likewise, and propagation runs on it as on any other.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.ops import DataFlowEdgeOp, NamedComputationOp
from sdy.ir.fast_access import is_terminator
from sdy.ir.operation_key import MemoizedByKey
from sdy.passes.auto.liveness import LiveCounts, peak_candidates
from sdy.passes.auto.origins import number_of
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.loops import loop_trips, loops_around
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.reading.reader import read
from sdy.passes.propagation.snapshot import UNSHARDABLE, DeadCode, Return, Sibling, Snapshot
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.work import OperationWork, work_of

_LEAST_ROUNDS = 4
"""Distance, in operations, up to which the definitions and uses of equal values are equal, at least."""

_MOST_GROWTH = 1.5
"""Unless the program has a stack of equal layers, the distance grows while the operations of the folded program become
no more than this multiple of those at the least distance. An estimate is closer to the cost of the partitioned program
if more values are distinguished."""

LAYERS = 3
"""Minimum number of equal layers that are a stack."""

_ROUNDS_OF_LIKENESS = 1
"""The same distance for similar values, such as the parameters of the first layer and of those in between."""

_NO_DEAD_CODE = DeadCode((), {}, {}, {}, (), (), {})


@dataclass(frozen=True, eq=False)
class FoldedOperation:
    """A class of equal operations of a program."""

    operation: Operation
    """A representative."""
    key: int
    """Number of the operation's name, attributes and types; equal operations have equal keys."""
    work: OperationWork
    nodes: tuple[int, ...]
    """The nodes of its operands and results."""
    times: int
    """The number of runs of the class in a step."""
    repeats: float
    """The number of runs of each operation: the iterations of the loops around it."""
    reads: tuple[int, ...]
    """For each operand, the set of values that the operations read, one bit per value."""
    span: tuple[int, int]
    """The positions of the first and the last operation of the class in the program."""


@dataclass(frozen=True, eq=False)
class FoldedProgram:
    """A module with equal operations and values merged. A node is a class of equal values."""

    module: ModuleOp
    snapshot: Snapshot
    """The folded propagation snapshot."""
    operations: Sequence[FoldedOperation]
    values: Sequence[SSAValue | None]
    """A representative value of each node."""
    arguments: Mapping[int, tuple[int, ...]]
    """The indices of the main function's arguments in each node."""
    likeness: Mapping[int, int]
    """The similarity class of each node: values with equal definitions and uses at distance one."""
    state: Mapping[int, int]
    """The result index of the next value of each state argument, by argument index."""
    returned: Mapping[int, tuple[int, int]]
    """For each node of a state argument, the node of the returned next value and the node of the function result."""
    origins: Mapping[int, tuple[int, ...]]
    """The numbers in `choosable_results` of the results in each node."""
    alive: LiveCounts
    """The number of live values of each node, at the times that can be the memory peak."""


def fold(module: ModuleOp) -> FoldedProgram:
    """Fold a module in which calls are inlined and data flow edges are explicit."""
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
        """The position of each operation that propagation does not erase, by its `id`."""
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
            peak_candidates(self._module, len(values), self._class_of, self._places),
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
        """Return the class of each node by partition refinement; node 0, `UNSHARDABLE`, is a class of its own."""
        snapshot = self._snapshot
        arguments = {node for function in snapshot.functions for node in function.arguments}
        self._likeness: Sequence[int] = ()
        classes = _numbered(
            (value and value.type, node in arguments, snapshot.initial.get(node))
            for node, value in enumerate(self._binding.values)
        )
        # The position at which a value is returned does not distinguish it.
        uses_and_definitions = [
            (key, nodes)
            for op, key, nodes in zip(self._binding.operations, self._keys, self._nodes, strict=True)
            if nodes and not is_terminator(op) and id(op) in self._places
        ]
        num_kinds, most_kinds, coarser = 0, 0.0, classes
        for completed in count():
            if completed == _ROUNDS_OF_LIKENESS:
                self._likeness = classes
            neighbors: list[list[tuple[int, int]]] = [[] for _ in classes]
            kinds = _numbered((key, *[classes[node] for node in nodes]) for key, nodes in uses_and_definitions)
            previous, num_kinds = num_kinds, max(kinds, default=0) + 1
            if completed == _LEAST_ROUNDS:
                if _is_stack(Counter(map(classes.__getitem__, arguments))):
                    break
                most_kinds = _MOST_GROWTH * num_kinds
            if completed > _LEAST_ROUNDS and num_kinds > most_kinds:
                classes = coarser
                break
            if completed >= _LEAST_ROUNDS and num_kinds == previous:
                break
            coarser = classes
            for kind, (_, nodes) in zip(kinds, uses_and_definitions, strict=True):
                for position, node in enumerate(nodes):
                    neighbors[node].append((kind, position))
            classes = _numbered((own, *sorted(each)) for own, each in zip(classes, neighbors, strict=True))
        own: list[Hashable] = [*classes]
        for _, (value, result) in snapshot.returns:
            own[result] = "returned", classes[value], snapshot.initial.get(result)
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
            {classes[node]: sharding for node, sharding in old.initial.items()},
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
        """Fold the edges from returned values to results, and add edges from state arguments to their next values."""
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
        members: dict[_Folded, list[Sequence[int]]] = defaultdict(list)
        last: dict[_Folded, Operation] = {}
        for op, key, nodes in zip(self._binding.operations, self._keys, self._nodes, strict=True):
            if id(op) in self._places and _has_cost(op):
                folded = key, tuple([self._classes[node] for node in nodes])
                first.setdefault(folded, op)
                last[folded] = op
                times[folded] += prod(loop_trips(loop) or 1 for loop in loops_around(op))
                members[folded].append(nodes)
        fused = FusedValues()
        return [
            FoldedOperation(
                op,
                key,
                work_of(op, fused),
                nodes,
                times[key, nodes],
                times[key, nodes] / len(members[key, nodes]),
                tuple([_bits(values) for values in [*zip(*members[key, nodes], strict=True)][: len(op.operands)]]),
                (self._places[id(op)], self._places[id(last[key, nodes])]),
            )
            for (key, nodes), op in first.items()
        ]


def _is_stack(sizes: Counter[int]) -> bool:
    """Return whether a class of arguments, given the sizes of the classes, has one of each of several equal layers."""
    return max(sizes.values(), default=0) >= LAYERS


def _numbered(values: Iterable[Hashable], first: int = 0) -> list[int]:
    """Number values in order of first occurrence, equal values equally."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, first + len(numbers)) for value in values]


def _bits(values: Iterable[int]) -> int:
    """Return a set of numbers as the bits of one."""
    return sum(1 << value for value in {*values})


_Folded = tuple[int, tuple[int, ...]]
"""Identity of a class of operations: its key, and the nodes of its operands and results."""


def _has_cost(op: Operation) -> bool:
    """Return whether `op` itself takes time: not a terminator, a data flow edge, or part of the body of a reduction."""
    parent = op.parent_op()
    return (
        bool(op.results)
        and not is_terminator(op)
        and not isinstance(op, DataFlowEdgeOp | NamedComputationOp)
        and op.name != "stablehlo.while"
        and parent is not None
        and parent.name in _CONTAINERS
    )


_CONTAINERS = {
    "func.func",
    "sdy.named_computation",
    "sdy.manual_computation",
    "stablehlo.while",
    "stablehlo.case",
    "stablehlo.if",
}
"""Operations whose bodies are sequences of operations that each take time."""
