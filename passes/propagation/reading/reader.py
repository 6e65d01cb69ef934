"""Read a module into a snapshot, in one pre-order pass over its operations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, ShapedType, TupleType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from sdy.diagnostics import error
from sdy.dialect.attributes import SHARDING, SHARDING_RULE, TensorShardingPerValueAttr
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import DataFlowEdgeOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp
from sdy.dialect.shardings import (
    func_arg_shardings,
    func_result_shardings,
    stores_result_shardings,
)
from sdy.ir.fast_access import is_terminator, operands_of, type_of
from sdy.ir.shapes import rank
from sdy.ir.walking import nesting_operations, operations, operations_at_top
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.data_flow_edges import edge_of
from sdy.passes.propagation.binding import Binding
from sdy.passes.propagation.reading.data_flow import NO_STEP, DataFlow, PropagationStep
from sdy.passes.propagation.reading.dead_code import is_trivially_dead, read_dead_code
from sdy.passes.propagation.reading.kinds import (
    has_reused,
    kind_of_barrier,
    kinds_by_use,
    select_kind,
)
from sdy.passes.propagation.reading.nodes import Nodes
from sdy.passes.propagation.reading.routes import EnclosingOperations, Routes, forwards_operands
from sdy.passes.propagation.reading.use_lists import sort_by_use_lists
from sdy.passes.propagation.snapshot import (
    UNSHARDABLE,
    FunctionNodes,
    KindsByUse,
    Return,
    Route,
    Sibling,
    Snapshot,
)
from sdy.passes.propagation.step import OperationKind


class Plain(NamedTuple):
    """The precomputed data to read the operations of a class for which `_is_plain` is true."""

    kinds_of: Callable[[Operation], KindsByUse | None]
    """Computes the kinds of an operation without a sharding rule attribute."""
    known: Mapping[int, KindsByUse | None]
    """Memoized kinds, by the `id` of the result type, for classes whose rule depends only on it; looked up first."""
    nest: bool
    """True if operations of this class in the module have regions."""


_NONE_KNOWN: Mapping[int, KindsByUse | None] = {}


def read(module: ModuleOp, conservative: bool = False) -> tuple[Snapshot, Binding]:
    """Read `module` for propagation.

    Args:
        module: The module.
        conservative: Propagate neither sub-axes nor axes that do not divide a dimension.

    Returns:
        The snapshot, and the binding of its numbers to the module.

    Raises:
        DiagnosticError: The module has functions but no main function, a tensor has a dynamic shape, or a value is a
            tuple.
    """
    return _Reader(module, conservative).read()


class _Reader:
    def __init__(self, module: ModuleOp, conservative: bool) -> None:
        self.module = module
        self.conservative = conservative
        self.kinds_by_use = kinds_by_use(conservative)
        self.operations = operations(module)
        self.nodes = Nodes()
        self.data_flow = DataFlow(module, self.nodes)

        # Fields of the snapshot and of the binding.
        self.kinds: list[OperationKind | None] = [None] * len(self.operations)
        self.tensors: list[Sequence[int]] = [()] * len(self.operations)
        self.siblings: dict[int, tuple[Sibling, ...]] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        self.functions: dict[FuncOp, FunctionNodes] = {}
        self.rule_owners: list[Operation] = []

        # Intermediate results.
        self.enclosing = EnclosingOperations(self.kinds)
        self.dead: list[int] = []
        """The operations that are trivially dead."""
        self.forwarded: set[int] = set()
        """The nodes whose change may affect other operations than their readers."""
        self.members: dict[int, list[SSAValue]] = {}
        """The members of each sharding group."""
        self.is_scalar: dict[int, bool] = {}
        """The checked types, by `id`: True for rank-0 tensors."""
        self.classes: dict[type[Operation], Plain | None] = {}
        """The precomputed data of each class of operations; None for classes that are not plain."""
        self.nesting_classes = {type(op) for op in nesting_operations(module)}

    def read(self) -> tuple[Snapshot, Binding]:
        main = (
            main_function(self.module) if any(op.__class__ is FuncOp for op in operations_at_top(self.module)) else None
        )
        self._read_operations()
        returns = self._read_returns(main)
        self._read_groups()
        dead_code = read_dead_code(self.dead, self.operations, self.kinds, self.conservative)
        routes = self._routes(dead_code.sizes)
        nodes = self.nodes
        sort_by_use_lists(nodes.readers, nodes.values, self.tensors, self.operations, routes)
        functions = list(self.functions)
        snapshot = Snapshot(
            named_meshes(self.module),
            nodes.initial,
            self.kinds,
            self.tensors,
            nodes.readers,
            routes,
            self.siblings,
            self.groups,
            tuple(self.functions.values()),
            None if main is None or main not in self.functions else functions.index(main),
            returns,
            dead_code,
        )
        return snapshot, Binding(
            self.operations, nodes.values, nodes.attributes, nodes.joined, nodes.by_id, functions, self.rule_owners
        )

    def _read_operations(self) -> None:
        """Read all operations. Optimized for plain operations, which are most."""
        is_scalar, classes, forwarded = self.is_scalar, self.classes, self.forwarded
        kinds, tensors = self.kinds, self.tensors
        values, attributes, readers = self.nodes.values, self.nodes.attributes, self.nodes.readers
        nodes, new_node_of = self.nodes.by_id, self.nodes.of
        node_of, set_default_node = nodes.get, nodes.setdefault
        block: Block | None = None
        is_nested = False
        # `map` reads the operands faster than a call per iteration.
        numbered = enumerate(zip(self.operations, map(operands_of, self.operations), strict=True))
        next(numbered)  # the module
        for number, (op, operands) in numbered:
            try:
                plain = classes[type(op)]
            except KeyError:
                plain = self._read_class(op)
            if plain is None:
                self._read_operation(number, op)
                continue
            kinds_of, known, nest = plain
            try:
                (result,) = op.results
            except ValueError:
                self._read_operation(number, op)
                continue
            type_id = id(type_of(result))
            try:
                is_unshardable = is_scalar[type_id]
            except KeyError:
                is_unshardable = self._check_type(op, result.type)
            own_attributes = op.attributes
            if is_unshardable and not own_attributes:
                node = nodes[id(result)] = UNSHARDABLE
            else:
                new = len(values)
                node = set_default_node(id(result), new)
                if node == new:
                    # Equivalent to `Nodes.new`.
                    values.append(result)
                    attributes.append(own_attributes)
                    readers.append([])
                if own_attributes:
                    self._read_attributes(op, node)
                    kinds_of, known = self.kinds_by_use.of, _NONE_KNOWN
            if nest:
                self._read_regions(number, op)
            if result.first_use is None and is_trivially_dead(op):
                self.dead.append(number)
            if not operands:
                continue
            op_nodes: list[int] = []
            for operand in operands:
                operand_node = node_of(id(operand))
                if operand_node is None:
                    operand_node = new_node_of(operand)
                op_nodes.append(operand_node)
            # If no operand can have a sharding, nothing propagates, and the operation needs no rule.
            if not any(op_nodes) or (op_kinds := known.get(type_id) or kinds_of(op)) is None:
                continue
            kind, reusing = op_kinds
            if kind is not reusing and has_reused(operands):
                kind = reusing
            if kind is None:
                continue
            op_nodes.append(node)
            kinds[number] = kind
            tensors[number] = op_nodes
            for node in op_nodes:
                readers[node].append(number)
            if op.parent is not block:
                block = op.parent
                is_nested = bool(self.enclosing.of_block(block))
            if is_nested:
                forwarded.update(op_nodes)

    def _read_class(self, op: Operation) -> Plain | None:
        """Determine how to read operations of the class of `op`; None if the class is not plain."""
        plain = None
        if _is_plain(op.__class__):
            kinds_of = self.kinds_by_use.lookup_for_class(op)
            known = self.kinds_by_use.known_by_result(op.__class__)
            plain = Plain(kinds_of, known, op.__class__ in self.nesting_classes)
        self.classes[op.__class__] = plain
        return plain

    def _read_attributes(self, op: Operation, node: int) -> None:
        """Read the sharding and the sharding rule of a plain operation with one result."""
        sharding = op.attributes.get(SHARDING)
        if isinstance(sharding, TensorShardingPerValueAttr):
            self.nodes.initial[node] = sharding.data[0]
        if SHARDING_RULE in op.attributes:
            self.rule_owners.append(op)

    def _read_regions(self, number: int, op: Operation) -> None:
        """Read the regions of a plain operation: their block arguments cannot have shardings."""
        self.enclosing.numbers[id(op)] = number
        for region in op.regions:
            block = region.first_block
            while block is not None:
                for argument in block.args:
                    self.nodes.by_id[id(argument)] = UNSHARDABLE
                block = block.next_block

    def _read_operation(self, number: int, op: Operation) -> None:
        """Read any operation, and the block arguments of its regions."""
        if op.attributes and SHARDING_RULE in op.attributes:
            self.rule_owners.append(op)
        for result in op.results:
            if id(type_of(result)) not in self.is_scalar:
                self._check_type(op, result.type)
        if is_terminator(op):
            self._read_terminator(op)
            return
        self.enclosing.numbers[id(op)] = number
        kind, tensors = _STEPS.get(op.__class__, _Reader.rule_step)(self, op)
        if kind is not None:
            self.kinds[number], self.tensors[number] = kind, tensors
            for node in tensors:
                self.nodes.readers[node].append(number)
        self.forwarded.update(tensors[:-1] if self._is_simple_edge(op, tensors) else tensors)
        if is_trivially_dead(op):
            self.dead.append(number)

    def _is_simple_edge(self, op: Operation, tensors: Sequence[int]) -> bool:
        """Return whether `op` is an edge whose change affects only its readers.

        Most edges are simple. If a user of the edge forwards it, reading that user marks it as forwarded.
        """
        return (
            op.__class__ is DataFlowEdgeOp
            and bool(tensors)
            and tensors[-1] not in self.data_flow.other_targets
            and not self.enclosing.of_block(op.parent)
        )

    def _read_terminator(self, op: Operation) -> None:
        """Mark the operands of a terminator as forwarded: their shardings propagate along edges."""
        block = op.parent
        func = block and block.parent and block.parent.parent
        # Values returned by a function without calls affect only its own results.
        if func.__class__ is not FuncOp or func in self.data_flow.calls:
            self.forwarded.update(self.nodes.of_all(operands_of(op)))

    def function_step(self, func: FuncOp) -> PropagationStep:
        """Allocate nodes for the function's arguments and results; a function has no step."""
        if func.is_declaration:
            return NO_STEP
        arguments = tuple([self.nodes.new(*each) for each in zip(func.args, func_arg_shardings(func), strict=True)])
        results = tuple([self.nodes.new(None, sharding) for sharding in func_result_shardings(func)])
        self.functions[func] = FunctionNodes(func.sym_name.data, arguments, results)
        return NO_STEP

    def _read_returns(self, main: FuncOp | None) -> tuple[Return, ...]:
        """Read the returned values of the main function, if it has a body."""
        if main is None or (returned := main.get_return_op()) is None:
            return ()
        returns: list[Return] = []
        for value, result in zip(operands_of(returned), self.functions[main].results, strict=False):
            kind = self.data_flow.kind(type_of(value))
            if kind is not None:
                returns.append(Return(kind, (self.nodes.of(value), result)))
        return tuple(returns)

    def _read_siblings(self, values: Sequence[SSAValue]) -> None:
        """Allocate nodes for values that are defined together, and record as siblings those that hold their sharding.

        Values with an edge are read with the edge.
        """
        nodes = [(value, self.nodes.of(value)) for value in values if edge_of(value) is None]
        if len(nodes) > 1:
            holders = [(value, node) for value, node in nodes if self.nodes.values[node] is value]
            siblings = tuple([Sibling(node, rank(value.type)) for value, node in holders])
            self.siblings.update({sibling.node: siblings for sibling in siblings})

    def _routes(self, erasable: Iterable[int]) -> dict[int, tuple[Route, ...]]:
        """Compute the routes from all nodes whose change affects more than their readers, or other nodes."""
        finder = Routes(self.operations, self.nodes, self.enclosing, self.data_flow, erasable)
        routes: dict[int, tuple[Route, ...]] = {UNSHARDABLE: ()}
        for node in {*self.forwarded, *self.groups, *self.siblings}:
            if (value := self.nodes.values[node]) is not None:
                routes[node] = finder.of(value, self.data_flow.other_targets.get(node, ()))
        return routes

    def _read_groups(self) -> None:
        for values in self.members.values():
            nodes = tuple(self.nodes.of_all(values))
            self.groups.update(
                {node: nodes for node, value in zip(nodes, values, strict=True) if self.nodes.values[node] is value}
            )

    def rule_step(self, op: Operation) -> PropagationStep:
        """Return the step at an operation by its sharding rule, and allocate the nodes of its regions."""
        self._read_siblings(op.results)
        for region in op.regions:
            for block in region.blocks:
                self._read_siblings(block.args)
        if forwards_operands(op.__class__):
            self.forwarded.update(self.nodes.of_all(op.operands))
        kinds = self.kinds_by_use.of(op)
        return NO_STEP if kinds is None else (select_kind(kinds, op), self.nodes.of_all((*op.operands, *op.results)))

    def barrier_step(self, barrier: PropagationBarrierOp) -> PropagationStep:
        """Return the step at a propagation barrier."""
        return kind_of_barrier(barrier), self.nodes.of_all((barrier.input, barrier.result))

    def group_step(self, member: ShardingGroupOp) -> PropagationStep:
        """Record the member; a group has no step, because the solver updates all members when one changes."""
        self.members.setdefault(member.group_id.value.data, []).append(member.input)
        return NO_STEP

    def _check_type(self, op: Operation, type_: Attribute) -> bool:
        """Check the type of a result of `op`, and return whether it is a rank-0 tensor.

        Raises:
            DiagnosticError: The type has a dynamic shape or is a tuple.
        """
        if isinstance(type_, ShapedType) and DYNAMIC_INDEX in type_.get_shape():
            message = "Shardy propagation only supports ranked tensors with a static shape"
            raise error(op, f"{message}. type: {type_}")
        if isinstance(type_, TupleType):
            raise error(op, f"Shardy propagation doesn't support tuples: {type_}")
        is_scalar = self.is_scalar[id(type_)] = isinstance(type_, ShapedType) and not type_.get_num_dims()
        return is_scalar


_STEPS: dict[type[Operation], Callable[[_Reader, Any], PropagationStep]] = {
    FuncOp: _Reader.function_step,
    DataFlowEdgeOp: lambda reader, edge: reader.data_flow.step_at_edge(edge),
    FuncDataFlowEdgeOp: lambda reader, edge: reader.data_flow.step_at_call_edge(edge),
    PropagationBarrierOp: _Reader.barrier_step,
    ShardingGroupOp: _Reader.group_step,
}
"""The step functions of operations whose step does not follow from a sharding rule."""


@cache
def _is_plain(op_class: type[Operation]) -> bool:
    """Return whether operations of this class take no part in other operations' data flow, and hold their shardings."""
    return (
        op_class not in (FuncOp, CallOp, FuncDataFlowEdgeOp, PropagationBarrierOp, ShardingGroupOp)
        and stores_result_shardings(op_class)
        and not op_class.has_trait(IsTerminator, value_if_unregistered=False)
    )
