"""Reading a module into the graph."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from sdy.dialect.interfaces import data_flow_of, defining_op
from sdy.dialect.ops import DataFlowEdgeOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp
from sdy.dialect.shardings import func_result_sharding, get_sharding, shardable_value
from sdy.dialect.traits import is_terminator
from sdy.dialect.walk import operations
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.common.tensors import is_static_tensor
from sdy.passes.propagation.graph import UNSHARDABLE, Graph, Return, Signature, is_dead
from sdy.passes.propagation.kinds import Kinds
from sdy.passes.propagation.step import Kind
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding


def read(module: ModuleOp, conservative: bool = False) -> Graph:
    """The graph of `module`. Raises DiagnosticError where there are functions, but none that is the main one."""
    return _Reader(module, conservative).read()


class _Reader:
    def __init__(self, module: ModuleOp, conservative: bool) -> None:
        self.graph = Graph(Kinds(conservative), Symbols(module))
        self.module = module
        self.nodes: dict[SSAValue, int] = {}

    def read(self) -> Graph:
        graph = self.graph
        graph.operations = operations(self.module)[1:]
        graph.numbers = {op: number for number, op in enumerate(graph.operations)}
        for op in graph.operations:
            if isinstance(op, CallOp):
                graph.calls.setdefault(callee(op, graph.symbols), []).append(op)
        for number, op in enumerate(graph.operations):
            self._read_operation(number, op)
        self._read_groups()
        return graph

    def _read_operation(self, number: int, op: Operation) -> None:
        graph = self.graph
        kind, tensors = self._step(op)
        graph.kinds.append(kind)
        graph.tensors.append(tensors)
        for node in dict.fromkeys(tensors) if kind else ():
            graph.readers[node].append(number)
        if is_dead(op):
            graph.dead.add(number)
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
        arguments = tuple([self._node(argument) for argument in func.args])
        results = tuple(
            self._new_node(None, func_result_sharding(func, index)) for index in range(len(func.function_type.outputs))
        )
        self.graph.signatures[func] = Signature(arguments, results)
        if func is main_function(self.module):
            returned = func.get_return_op()
            for value, result in zip(returned.operands if returned else (), results, strict=False):
                if is_static_tensor(value.type):
                    kind = self.graph.kinds_of.of_edge(value.type, 1)
                    self.graph.returns.append(Return(kind, (self._node(value), result)))

    def _read_siblings(self, values: Sequence[SSAValue]) -> None:
        """The nodes of values that are defined together, and keep their shardings together if these are their own."""
        nodes = tuple([self._node(value) for value in values])
        if len(nodes) > 1:
            own = tuple(node for node, value in zip(nodes, values, strict=True) if self.graph.places[node] is value)
            self.graph.siblings.update(dict.fromkeys(own, own))

    def _read_groups(self) -> None:
        members: dict[int, list[SSAValue]] = {}
        for op in self.graph.operations:
            if isinstance(op, ShardingGroupOp):
                members.setdefault(op.group_id.value.data, []).append(op.input)
        for values in members.values():
            nodes = tuple([self._node(value) for value in values])
            self.graph.groups.update(
                {node: nodes for node, value in zip(nodes, values, strict=True) if self.graph.places[node] is value}
            )

    def _step(self, op: Operation) -> tuple[Kind | None, tuple[int, ...]]:
        """What a step does at `op`, and the nodes of the tensors that it sees."""
        if is_terminator(op):
            return None, ()
        kinds = self.graph.kinds_of
        if isinstance(op, DataFlowEdgeOp):
            return self._edge_step(op)
        if isinstance(op, FuncDataFlowEdgeOp):
            sources = self._call_sources(op)
            return self._tensors(kinds.of_edge(op.input.type, len(sources)) if sources else None, (*sources, op.result))
        if isinstance(op, PropagationBarrierOp):
            return self._tensors(kinds.of_barrier(op), (op.input, op.result))
        rule = sharding_rule(op, kinds.conservative)
        if rule is None:
            return None, ()
        self.graph.rules[op] = rule
        return self._tensors(kinds.of_operation(op, rule), (*op.operands, *op.results))

    def _tensors(self, kind: Kind | None, values: Sequence[SSAValue]) -> tuple[Kind | None, tuple[int, ...]]:
        """`kind`, unless a single tensor leaves nothing to propagate, and the nodes of `values`."""
        return kind if len(values) > 1 else None, tuple([self._node(value) for value in values])

    def _edge_step(self, edge: DataFlowEdgeOp) -> tuple[Kind | None, tuple[int, ...]]:
        if not is_static_tensor(edge.input.type):
            return None, ()
        op = defining_op(edge.input)
        flow = data_flow_of(op) if op else None
        assert op is not None
        assert flow is not None
        sources = [use.operation.operands[use.index] for use in flow.edge_sources(op, edge.input)]
        kind = self.graph.kinds_of.of_data_flow_edge(edge.input, flow, op, len(sources))
        return self._tensors(kind, (*sources, edge.result))

    def _call_sources(self, edge: FuncDataFlowEdgeOp) -> list[SSAValue]:
        """What flows into a function's argument from all of its calls, or into a call's result from its function."""
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
        node = self.nodes.get(value)
        if node is None:
            holder = shardable_value(value)
            if holder is None:
                node = UNSHARDABLE
            elif holder is value:
                node = self._new_node(value, get_sharding(value))
            else:
                node = self._node(holder)
            self.nodes[value] = node
        return node

    def _new_node(self, place: SSAValue | None, sharding: TensorSharding | None) -> int:
        graph = self.graph
        graph.places.append(place)
        graph.shardings.append(sharding)
        graph.readers.append([])
        return len(graph.places) - 1
