"""Reading a module into the graph."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, ShapedType, TupleType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from sdy.diagnostics import error
from sdy.dialect.attributes import SHARDING, SHARDING_RULE, TensorShardingPerValueAttr
from sdy.dialect.interfaces import data_flow_of, defining_op
from sdy.dialect.ops import DataFlowEdgeOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp
from sdy.dialect.shardings import (
    func_arg_shardings,
    func_result_shardings,
    get_sharding,
    keeps_shardings_of_results,
    shardable_value,
)
from sdy.dialect.verifiers import verify_func_data_flow_edge
from sdy.ir.fields import operands_of, type_of
from sdy.ir.shapes import is_static_tensor
from sdy.ir.walking import nesting_operations, operations, operations_of
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.data_flow_edges import edge_of
from sdy.passes.common.symbols import Symbols
from sdy.passes.propagation.graph import UNSHARDABLE, Graph, Return, Signature, is_dead, leads_elsewhere
from sdy.passes.propagation.kinds import (
    OPERATION_KINDS,
    OperationKinds,
    is_seen_otherwise_inside,
    kind_of_barrier,
    kind_of_edge,
    kind_of_two_sided_edge,
    reuses_operand,
)
from sdy.passes.propagation.step import Kind
from sdy.sharding import TensorSharding


class Plain(NamedTuple):
    """How the operations of a class are read of which `_is_plain` holds."""

    kinds_of: Callable[[Operation], OperationKinds | None]
    """How the kinds of an operation without a given rule are found."""
    nest: bool
    """Whether there are operations of this class that have regions."""


Step = tuple[Kind | None, Sequence[int]]
"""What a step does at an operation: its kind, and the nodes of the tensors that it sees."""

_NO_STEP: Step = (None, ())


def read(module: ModuleOp, conservative: bool = False) -> Graph:
    """The graph of `module`.

    Raises DiagnosticError where there are functions, but none that is the main one; for tensors without a static
    shape; and for tuples.
    """
    return _Reader(module, conservative).read()


class _Reader:
    def __init__(self, module: ModuleOp, conservative: bool) -> None:
        self.graph = Graph(OPERATION_KINDS[conservative], Symbols(module))
        self.module = module
        self.nodes = self.graph.nodes
        self.is_scalar: dict[int, bool] = {}
        """Whether a type is that of a tensor without dimensions, by the type's `id`, of those met and not refused."""
        self.classes: dict[type[Operation], Plain | None] = {}
        """How the operations of each class are read; None for classes that are not plain."""
        self.nesting_classes = {type(op) for op in nesting_operations(module)}
        self.edge_kinds: dict[tuple[int, int], Kind | None] = {}
        """The kind of an edge, by the `id` of the tensors' type and the number of sources."""
        self.groups: dict[int, list[SSAValue]] = {}
        """The members of each sharding group."""

    def read(self) -> Graph:
        graph = self.graph
        graph.operations = operations(self.module)
        graph.kinds, graph.tensors = [None] * len(graph.operations), [()] * len(graph.operations)
        graph.main = main_function(self.module) if any(op.__class__ is FuncOp for op in self.module.ops) else None
        for call in operations_of(self.module, CallOp):
            graph.calls.setdefault(callee(call, graph.symbols), []).append(call)
        self._read_operations()
        self._read_returns()
        self._read_groups()
        return graph

    def _read_operations(self) -> None:
        """Written to be fast: this loop goes round once for each operation, most of which are plain."""
        graph, is_scalar, classes = self.graph, self.is_scalar, self.classes
        nodes, kinds, tensors = self.nodes, graph.kinds, graph.tensors
        places, attributes, readers, winding = graph.places, graph.attributes, graph.readers, graph.winding
        node_of, set_default_node = nodes.get, nodes.setdefault
        block: Block | None = None
        is_winding = False
        numbered = enumerate(graph.operations)
        next(numbered)  # the module
        for number, op in numbered:
            try:
                plain = classes[type(op)]
            except KeyError:
                plain = self._read_class(op)
            if plain is None:
                self._read_operation(number, op)
                continue
            kinds_of, nest = plain
            try:
                (result,) = op.results
            except ValueError:
                self._read_operation(number, op)
                continue
            try:
                is_unshardable = is_scalar[id(type_of(result))]
            except KeyError:
                is_unshardable = self._check_type(op, result.type)
            given = op.attributes
            if is_unshardable and not given:
                node = nodes[id(result)] = UNSHARDABLE
            else:
                new = len(places)
                node = set_default_node(id(result), new)
                if node == new:
                    # As `_new_node` does it.
                    places.append(result)
                    attributes.append(given)
                    readers.append([])
                if given:
                    self._read_attributes(op, node)
                    kinds_of = graph.operation_kinds.of
            if nest:
                self._read_regions(number, op)
            if result.first_use is None and is_dead(op):
                graph.dead.add(number)
            operands = operands_of(op)
            if not operands:
                continue
            together: list[int] = []
            for operand in operands:
                other = node_of(id(operand))
                if other is None:
                    other = self._node(operand)
                together.append(other)
            # Where the result alone can have a sharding nothing is propagated, and no rule need be found.
            if not any(together) or (found := kinds_of(op)) is None:
                continue
            kind, reusing = found
            if kind is not reusing and reuses_operand(op):
                kind = reusing
            if kind is None:
                continue
            together.append(node)
            kinds[number] = kind
            tensors[number] = together
            for node in together:
                readers[node].append(number)
            if op.parent is not block:
                block = op.parent
                is_winding = graph.is_in_what_propagates(block)
            if is_winding:
                winding.update(together)

    def _read_class(self, op: Operation) -> Plain | None:
        """How operations of the class of `op` are read; None where these are not plain."""
        plain = None
        if _is_plain(op.__class__):
            plain = Plain(self.graph.operation_kinds.way_of_class(op), op.__class__ in self.nesting_classes)
        self.classes[op.__class__] = plain
        return plain

    def _read_attributes(self, op: Operation, node: int) -> None:
        """The sharding and the rule that a plain operation with one result was given."""
        kept = op.attributes.get(SHARDING)
        if isinstance(kept, TensorShardingPerValueAttr):
            self.graph.given[node] = kept.data[0]
        if SHARDING_RULE in op.attributes:
            self.graph.given_rules.append(op)

    def _read_regions(self, number: int, op: Operation) -> None:
        """The regions of a plain operation, if it has any, whose arguments cannot have shardings."""
        self.graph.numbers_in_flow[id(op)] = number
        for region in op.regions:
            block = region.first_block
            while block is not None:
                for argument in block.args:
                    self.nodes[id(argument)] = UNSHARDABLE
                block = block.next_block

    def _read_operation(self, number: int, op: Operation) -> None:
        """Any operation at all, with what its regions have."""
        graph = self.graph
        graph.numbers_in_flow[id(op)] = number
        if op.attributes and SHARDING_RULE in op.attributes:
            graph.given_rules.append(op)
        for result in op.results:
            if id(result.type) not in self.is_scalar:
                self._check_type(op, result.type)
        kind, tensors = _way_to_step(op.__class__)(self, op)
        graph.kinds[number], graph.tensors[number] = kind, tensors
        if kind is not None:
            for node in tensors:
                graph.readers[node].append(number)
        graph.winding.update(tensors)
        if is_dead(op):
            graph.dead.add(number)

    def terminator_step(self, op: Operation) -> Step:
        """None: what a terminator passes on is propagated along edges."""
        block = op.parent
        func = block and block.parent and block.parent.parent
        # What a function returns that nobody calls leads nowhere, but for `graph.returns`.
        if func.__class__ is not FuncOp or func in self.graph.calls:
            self.graph.winding.update(self._nodes(operands_of(op)))
        return _NO_STEP

    def function_step(self, func: FuncOp) -> Step:
        """None, but the function's arguments and results are places of their own."""
        if func.is_declaration:
            return _NO_STEP
        arguments = tuple([self._own_node(*each) for each in zip(func.args, func_arg_shardings(func), strict=True)])
        results = tuple([self._new_node(None, sharding) for sharding in func_result_shardings(func)])
        self.graph.signatures[func] = Signature(arguments, results)
        return _NO_STEP

    def _read_returns(self) -> None:
        """What the main function returns, if it has a body."""
        graph = self.graph
        if graph.main is None or (returned := graph.main.get_return_op()) is None:
            return
        for value, result in zip(returned.operands, graph.signatures[graph.main].results, strict=False):
            kind = self._edge_kind(value.type)
            if kind is not None:
                graph.returns.append(Return(kind, (self._node(value), result)))

    def _read_siblings(self, values: Sequence[SSAValue]) -> None:
        """The nodes of values that are defined together, and keep their shardings together if these are their own.

        Those with an edge are read with it.
        """
        nodes = [(value, self._node(value)) for value in values if edge_of(value) is None]
        if len(nodes) > 1:
            own = tuple([node for value, node in nodes if self.graph.places[node] is value])
            self.graph.siblings.update(dict.fromkeys(own, own))

    def _read_groups(self) -> None:
        for values in self.groups.values():
            nodes = tuple(self._nodes(values))
            self.graph.groups.update(
                {node: nodes for node, value in zip(nodes, values, strict=True) if self.graph.places[node] is value}
            )

    def own_step(self, op: Operation) -> Step:
        """The step at an operation with a rule, and the places in one with data flow."""
        self._read_siblings(op.results)
        for region in op.regions:
            for block in region.blocks:
                self._read_siblings(block.args)
        if leads_elsewhere(op.__class__):
            self.graph.winding.update(self._nodes(op.operands))
        kinds = self.graph.operation_kinds.of(op)
        return _NO_STEP if kinds is None else (kinds.of(op), self._nodes((*op.operands, *op.results)))

    def edge_step(self, edge: DataFlowEdgeOp) -> Step:
        """The step at a data-flow edge."""
        (owner,), (result,) = edge.operands, edge.results
        node = self._node(owner)
        op, kind = defining_op(owner), self._edge_kind(owner.type)
        if op is None or kind is None:
            return _NO_STEP
        flow = data_flow_of(op)
        assert flow is not None
        if others := flow.non_owner_targets(op, owner):
            self.graph.other_targets[node] = others
        sources = flow.edge_sources(op, owner)
        if not sources:
            return _NO_STEP
        if is_seen_otherwise_inside(flow):
            kind = kind_of_two_sided_edge(owner, flow, op, len(sources))
        elif len(sources) > 1:
            kind = self._edge_kind(owner.type, len(sources))
        return kind, [*[self._node(use.operation.operands[use.index]) for use in sources], self._node(result)]

    def call_step(self, edge: FuncDataFlowEdgeOp) -> Step:
        """The step at the edge between a function and its calls."""
        sources = self._call_sources(edge)
        kind = self._edge_kind(edge.input.type, len(sources)) if sources else None
        return kind, self._nodes((*sources, edge.result))

    def barrier_step(self, barrier: PropagationBarrierOp) -> Step:
        """The step at a barrier."""
        return kind_of_barrier(barrier), self._nodes((barrier.input, barrier.result))

    def group_step(self, member: ShardingGroupOp) -> Step:
        """None: what a sharding group does, it does wherever a member changes."""
        self.groups.setdefault(member.group_id.value.data, []).append(member.input)
        return _NO_STEP

    def _edge_kind(self, type_: Attribute, num_sources: int = 1) -> Kind | None:
        key = id(type_), num_sources
        if key not in self.edge_kinds:
            self.edge_kinds[key] = kind_of_edge(type_, num_sources)
        return self.edge_kinds[key]

    def _call_sources(self, edge: FuncDataFlowEdgeOp) -> list[SSAValue]:
        """What flows into a function's argument from all of its calls, or into a call's result from its function.

        Raises DiagnosticError where the call was inlined, as the pipeline does, and the edge is that of none.
        """
        verify_func_data_flow_edge(edge)
        value = edge.input
        if not is_static_tensor(value.type):
            return []
        if isinstance(value, BlockArgument):
            return [call.arguments[value.index] for call in self.graph.calls.get(defining_op(value), ())]
        assert isinstance(value, OpResult)
        assert isinstance(value.op, CallOp)
        returned = callee(value.op, self.graph.symbols).get_return_op()
        return [returned.operands[value.index]] if returned else []

    def _nodes(self, values: Iterable[SSAValue]) -> list[int]:
        return [self._node(value) for value in values]

    def _node(self, value: SSAValue) -> int:
        node = self.nodes.get(id(value))
        if node is not None:
            return node
        edge = edge_of(value)
        if edge is not None:
            (result,), sharding = edge.results, edge.sharding
            node = self._own_node(result, sharding and sharding.data)
        else:
            holder = shardable_value(value)
            if holder is value:
                return self._new_node(value, get_sharding(value))
            node = UNSHARDABLE if holder is None else self._node(holder)
        self.nodes[id(value)] = node
        self.graph.joined.append(value)
        return node

    def _own_node(self, value: SSAValue, sharding: TensorSharding | None) -> int:
        """The node of a value that is known to hold its sharding itself."""
        node = self.nodes.get(id(value))
        return self._new_node(value, sharding) if node is None else node

    def _new_node(self, place: SSAValue | None, sharding: TensorSharding | None) -> int:
        graph = self.graph
        node = len(graph.places)
        graph.places.append(place)
        graph.readers.append([])
        graph.attributes.append(None)
        if sharding is not None:
            graph.given[node] = sharding
        if place is not None:
            self.nodes[id(place)] = node
        return node

    def _check_type(self, op: Operation, type_: Attribute) -> bool:
        """Whether the type of a result of `op` is that of a tensor without dimensions.

        Raises DiagnosticError for a type that cannot be propagated.
        """
        if isinstance(type_, ShapedType) and DYNAMIC_INDEX in type_.get_shape():
            message = "Shardy propagation only supports ranked tensors with a static shape"
            raise error(op, f"{message}. type: {type_}")
        if isinstance(type_, TupleType):
            raise error(op, f"Shardy propagation doesn't support tuples: {type_}")
        is_scalar = self.is_scalar[id(type_)] = isinstance(type_, ShapedType) and not type_.get_num_dims()
        return is_scalar


_STEPS: dict[type[Operation], Callable[[_Reader, Any], Step]] = {
    FuncOp: _Reader.function_step,
    DataFlowEdgeOp: _Reader.edge_step,
    FuncDataFlowEdgeOp: _Reader.call_step,
    PropagationBarrierOp: _Reader.barrier_step,
    ShardingGroupOp: _Reader.group_step,
}
"""How what is done at operations of a class is found, where it does not follow from a rule."""


@cache
def _way_to_step(op_class: type[Operation]) -> Callable[[_Reader, Any], Step]:
    if op_class.has_trait(IsTerminator, value_if_unregistered=False):
        return _Reader.terminator_step
    return _STEPS.get(op_class, _Reader.own_step)


@cache
def _is_plain(op_class: type[Operation]) -> bool:
    """Whether operations of this class have no part in data flow but their own, and keep their shardings themselves."""
    return (
        op_class not in (FuncOp, CallOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp)
        and keeps_shardings_of_results(op_class)
        and not op_class.has_trait(IsTerminator, value_if_unregistered=False)
    )
