"""The data-flow edges of a module: into and out of operations with regions, and into and out of called functions."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from sdy.dialect.interfaces import data_flow_of, defining_op
from sdy.dialect.ops import DataFlowEdgeOp, FuncDataFlowEdgeOp
from sdy.dialect.verifiers import verify_func_data_flow_edge
from sdy.ir.fast_access import operands_of, user_of
from sdy.ir.shapes import is_static_tensor
from sdy.ir.walking import operations_of
from sdy.passes.common.call_graph import callee
from sdy.passes.common.symbols import Symbols
from sdy.passes.propagation.reading.kinds import kind_of_edge, kind_of_two_sided_edge
from sdy.passes.propagation.reading.nodes import Nodes
from sdy.passes.propagation.step import OperationKind

PropagationStep = tuple[OperationKind | None, Sequence[int]]
"""The step at an operation: its kind, and the nodes of its tensors."""

NO_STEP: PropagationStep = (None, ())

SourceKey = tuple[int, int]
"""A use that is a source of a data-flow edge: the `id` of the using operation, and the operand index."""


class DataFlow:
    """The data-flow edges read so far, and the calls of `module`."""

    def __init__(self, module: ModuleOp, nodes: Nodes) -> None:
        self.symbols = Symbols(module)
        self.calls: dict[Operation | None, list[CallOp]] = {}
        """The calls of each function."""
        self.edges: dict[SourceKey, DataFlowEdgeOp] = {}
        """The data-flow edge of each source, except edges into manual and named computations.

        This follows Shardy, where a change of an operand of these reaches the edge inside only in the next round, when
        all operations are visited; the result of conflicts depends on it.
        """
        self.other_targets: dict[int, Sequence[SSAValue]] = {}
        """The targets other than the owner of each edge that has several, by the edge's node."""
        self._nodes = nodes
        self._kinds: dict[tuple[int, int], OperationKind | None] = {}
        """The kinds of edges, by the `id` of the tensor type and the number of sources."""
        for call in operations_of(module, CallOp):
            self.calls.setdefault(callee(call, self.symbols), []).append(call)

    def step_at_edge(self, edge: DataFlowEdgeOp) -> PropagationStep:
        """Return the step at a data-flow edge."""
        (owner,), (result,) = operands_of(edge), edge.results
        nodes = self._nodes
        node = nodes.of(owner)
        op, kind = defining_op(owner), self.kind(owner.type)
        if op is None:
            return NO_STEP
        flow = data_flow_of(op)
        assert flow is not None
        sources = [(user_of(use), use.index) for use in flow.edge_sources(op, owner)]
        if type(owner) is OpResult and nodes.values[node] is result:
            for user, index in sources:
                self.edges[id(user), index] = edge
        if kind is None:
            return NO_STEP
        if others := flow.non_owner_targets(op, owner):
            self.other_targets[node] = others
        if not sources:
            return NO_STEP
        if (sides := flow.sides(op, owner)) is not None:
            kind = kind_of_two_sided_edge(owner, sides, len(sources))
        elif len(sources) > 1:
            kind = self.kind(owner.type, len(sources))
        return kind, [*[nodes.of(operands_of(user)[index]) for user, index in sources], nodes.of(result)]

    def step_at_call_edge(self, edge: FuncDataFlowEdgeOp) -> PropagationStep:
        """Return the step at a data-flow edge between a function and its calls."""
        sources = self._call_sources(edge)
        kind = self.kind(edge.input.type, len(sources)) if sources else None
        return kind, self._nodes.of_all((*sources, edge.result))

    def kind(self, type_: Attribute, num_sources: int = 1) -> OperationKind | None:
        """Return the kind of an edge between tensors of one type; None if no sharding propagates along it."""
        key = id(type_), num_sources
        try:
            return self._kinds[key]
        except KeyError:
            kind = self._kinds[key] = kind_of_edge(type_, num_sources)
            return kind

    def _call_sources(self, edge: FuncDataFlowEdgeOp) -> list[SSAValue]:
        """Return the operands of all calls that flow into a function argument, or the value that flows into a result.

        Raises:
            DiagnosticError: The edge belongs to no call, for example because the call was inlined.
        """
        verify_func_data_flow_edge(edge)
        value = edge.input
        if not is_static_tensor(value.type):
            return []
        if isinstance(value, BlockArgument):
            return [call.arguments[value.index] for call in self.calls.get(defining_op(value), ())]
        assert isinstance(value, OpResult)
        assert isinstance(value.op, CallOp)
        returned = callee(value.op, self.symbols).get_return_op()
        return [returned.operands[value.index]] if returned else []
