"""Reading a module into the graph."""

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, ShapedType, TupleType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from sdy.diagnostics import error
from sdy.dialect.attributes import SHARDING, SHARDING_RULE, OpShardingRuleAttr, TensorShardingPerValueAttr
from sdy.dialect.interfaces import data_flow_of, defining_op
from sdy.dialect.ops import DataFlowEdgeOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp
from sdy.dialect.shardings import (
    func_arg_shardings,
    func_result_shardings,
    get_sharding,
    keeps_shardings_of_results,
    shardable_value,
)
from sdy.dialect.traits import is_terminator
from sdy.dialect.verifiers import verify_operation
from sdy.dialect.walk import operations, operations_of
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.common.tensors import is_static_tensor
from sdy.passes.propagation.graph import UNSHARDABLE, Graph, Return, Signature, is_dead
from sdy.passes.propagation.kinds import OPERATION_KINDS, kind_of_barrier, kind_of_data_flow_edge, kind_of_edge
from sdy.passes.propagation.step import Kind
from sdy.sharding import TensorSharding

Step = tuple[OpShardingRuleAttr | None, Kind | None, Sequence[int]]
"""What a step does at an operation: its rule, if it has one, its kind, and the nodes of the tensors that it sees."""

_NO_STEP: Step = (None, None, ())


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
        self.types: set[int] = set()
        """The `id` of each type of a result that was met, none of which is refused."""
        self.edge_kinds: dict[int, Kind] = {}
        """The kind of an edge with one source, by the `id` of the tensors' type."""
        self.groups: dict[int, list[SSAValue]] = {}
        """The members of each sharding group."""

    def read(self) -> Graph:
        graph = self.graph
        graph.operations = list(operations(self.module)[1:])
        for call in operations_of(self.module, CallOp):
            graph.calls.setdefault(callee(call, graph.symbols), []).append(call)
        self._read_operations()
        self._read_groups()
        return graph

    def _read_operations(self) -> None:
        """Written to be fast: this loop goes round once for each operation, most of which are plain."""
        graph, nodes, types = self.graph, self.nodes, self.types
        kinds_of, node_of = graph.operation_kinds.of, nodes.__getitem__
        places, shardings, readers, winding = graph.places, graph.shardings, graph.readers, graph.winding
        add_rule, add_kind, add_tensors = graph.rules.append, graph.kinds.append, graph.tensors.append
        block: Block | None = None
        is_nested = False
        for number, op in enumerate(graph.operations):
            if op.parent is not block:
                block = op.parent
                is_nested = op.parent_op().__class__ is not FuncOp
            if not _is_plain(op.__class__):
                self._read_operation(number, op)
                continue
            operands, results = op._operands, op.results  # pyright: ignore[reportPrivateUsage]
            try:
                tensors = [*map(node_of, map(id, operands))]
            except KeyError:
                tensors = [self._node(operand) for operand in operands]
            is_used = False
            for result in results:
                if id(result._type) not in types:  # pyright: ignore[reportPrivateUsage]
                    self._check_type(op, result.type)
                if result.first_use is not None:
                    is_used = True
                node = nodes.get(id(result))
                if node is None:
                    # As `_new_node` does it.
                    node = nodes[id(result)] = len(places)
                    places.append(result)
                    shardings.append(None)
                    readers.append([])
                tensors.append(node)
            add_tensors(tensors)
            kinds = kinds_of(op)
            if kinds is None:
                add_rule(None)
                add_kind(None)
            else:
                kind = kinds.of(op)
                add_rule(kinds.rule)
                add_kind(kind)
                if kind is not None:
                    for node in {*tensors}:
                        readers[node].append(number)
            if is_nested:
                winding.update(tensors)
            if len(results) > 1:
                defined = tensors[-len(results) :]
                graph.siblings.update(dict.fromkeys(defined, tuple(defined)))
            if op.attributes:
                self._read_attributes(op, tensors)
            if not is_used and is_dead(op):
                graph.dead.add(number)

    def _read_attributes(self, op: Operation, tensors: Sequence[int]) -> None:
        """The shardings and the rule that a plain operation was given."""
        kept = op.attributes.get(SHARDING)
        # An operation without results may have a sharding all the same, of a single device.
        if isinstance(kept, TensorShardingPerValueAttr) and op.results:
            for node, sharding in zip(tensors[-len(op.results) :], kept.data, strict=False):
                self.graph.shardings[node] = sharding
        if SHARDING_RULE in op.attributes:
            self.graph.given_rules.append(op)

    def _read_operation(self, number: int, op: Operation) -> None:
        """Any operation at all, with what its regions have."""
        graph = self.graph
        if SHARDING_RULE in op.attributes:
            graph.given_rules.append(op)
        if is_terminator(op):
            func = op.parent_op()
            # What a function returns that nobody calls leads nowhere, but for `graph.returns`.
            if not isinstance(func, FuncOp) or func in graph.calls:
                graph.winding.update(map(self._node, op.operands))
            self._add(number, _NO_STEP)
            return
        for result in op.results:
            self._check_type(op, result.type)
        step = self._step(op)
        self._read_places(op)
        graph.winding.update(step[2], map(self._node, op.operands), map(self._node, op.results))
        self._add(number, step)
        if is_dead(op):
            graph.dead.add(number)

    def _add(self, number: int, step: Step) -> None:
        graph = self.graph
        rule, kind, tensors = step
        graph.rules.append(rule)
        graph.kinds.append(kind)
        graph.tensors.append(tensors)
        if kind is not None:
            for node in set(tensors):
                graph.readers[node].append(number)

    def _read_places(self, op: Operation) -> None:
        """The nodes of the values that `op` defines, or that are arguments of its regions."""
        if isinstance(op, FuncOp):
            self._read_function(op)
        else:
            self._read_siblings(op.results)
            for region in op.regions:
                for block in region.blocks:
                    self._read_siblings(block.args)

    def _read_function(self, func: FuncOp) -> None:
        if func.is_declaration:
            return
        arguments = tuple([self._own_node(*each) for each in zip(func.args, func_arg_shardings(func), strict=True)])
        results = tuple([self._new_node(None, sharding) for sharding in func_result_shardings(func)])
        self.graph.signatures[func] = Signature(arguments, results)
        if func is main_function(self.module):
            self.graph.main = func
            returned = func.get_return_op()
            for value, result in zip(returned.operands if returned else (), results, strict=False):
                if is_static_tensor(value.type):
                    self.graph.returns.append(Return(self._edge_kind(value.type), (self._node(value), result)))

    def _read_siblings(self, values: Sequence[SSAValue]) -> None:
        """The nodes of values that are defined together, and keep their shardings together if these are their own."""
        nodes = [self._node(value) for value in values]
        if len(nodes) > 1:
            own = tuple(node for node, value in zip(nodes, values, strict=True) if self.graph.places[node] is value)
            self.graph.siblings.update(dict.fromkeys(own, own))

    def _read_groups(self) -> None:
        for values in self.groups.values():
            nodes = tuple([self._node(value) for value in values])
            self.graph.groups.update(
                {node: nodes for node, value in zip(nodes, values, strict=True) if self.graph.places[node] is value}
            )

    def _step(self, op: Operation) -> Step:
        if isinstance(op, DataFlowEdgeOp):
            return self._edge_step(op)
        if isinstance(op, ShardingGroupOp):
            self.groups.setdefault(op.group_id.value.data, []).append(op.input)
            return _NO_STEP
        if isinstance(op, FuncDataFlowEdgeOp):
            sources = self._call_sources(op)
            return self._tensors(kind_of_edge(op.input.type, len(sources)) if sources else None, (*sources, op.result))
        if isinstance(op, PropagationBarrierOp):
            return self._tensors(kind_of_barrier(op), (op.input, op.result))
        kinds = self.graph.operation_kinds.of(op)
        if kinds is None:
            return _NO_STEP
        return self._tensors(kinds.of(op), (*op.operands, *op.results), kinds.rule)

    def _tensors(self, kind: Kind | None, values: Sequence[SSAValue], rule: OpShardingRuleAttr | None = None) -> Step:
        return rule, kind, [self._node(value) for value in values]

    def _edge_step(self, edge: DataFlowEdgeOp) -> Step:
        owner = edge.input
        if not is_static_tensor(owner.type):
            return _NO_STEP
        op = defining_op(owner)
        flow = data_flow_of(op) if op else None
        assert op is not None
        assert flow is not None
        sources = [use.operation.operands[use.index] for use in flow.edge_sources(op, owner)]
        kind = kind_of_data_flow_edge(owner, flow, op, len(sources)) if sources else None
        return self._tensors(kind, (*sources, edge.results[0]))

    def _edge_kind(self, type_: Attribute) -> Kind:
        kind = self.edge_kinds.get(id(type_))
        if kind is None:
            kind = self.edge_kinds[id(type_)] = kind_of_edge(type_, 1)
        return kind

    def _call_sources(self, edge: FuncDataFlowEdgeOp) -> list[SSAValue]:
        """What flows into a function's argument from all of its calls, or into a call's result from its function.

        Raises DiagnosticError where the call was inlined, as the pipeline does, and the edge is that of none.
        """
        verify_operation(edge)
        value = edge.input
        if not is_static_tensor(value.type):
            return []
        if isinstance(value, BlockArgument):
            return [call.arguments[value.index] for call in self.graph.calls.get(defining_op(value), ())]
        assert isinstance(value, OpResult)
        assert isinstance(value.op, CallOp)
        returned = callee(value.op, self.graph.symbols).get_return_op()
        return [returned.operands[value.index]] if returned else []

    def _node(self, value: SSAValue) -> int:
        node = self.nodes.get(id(value))
        if node is None:
            holder = shardable_value(value)
            if holder is value:
                return self._new_node(value, get_sharding(value))
            node = self.nodes[id(value)] = UNSHARDABLE if holder is None else self._node(holder)
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
        graph.shardings.append(sharding)
        graph.readers.append([])
        if place is not None:
            self.nodes[id(place)] = node
        return node

    def _check_type(self, op: Operation, type_: Attribute) -> None:
        """Refuse a type of a result of `op` that cannot be propagated. Raises DiagnosticError."""
        if id(type_) in self.types:
            return
        if isinstance(type_, ShapedType) and DYNAMIC_INDEX in type_.get_shape():
            message = "Shardy propagation only supports ranked tensors with a static shape"
            raise error(op, f"{message}. type: {type_}")
        if isinstance(type_, TupleType):
            raise error(op, f"Shardy propagation doesn't support tuples: {type_}")
        self.types.add(id(type_))


@cache
def _is_plain(op_class: type[Operation]) -> bool:
    """Whether operations of this class have no part in data flow but their own, and keep their shardings themselves."""
    return (
        op_class not in (FuncOp, CallOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp)
        and keeps_shardings_of_results(op_class)
        and not op_class.has_trait(IsTerminator, value_if_unregistered=False)
    )
