"""Verifiers of operations of the dialect, and of its attributes on any operation, with MLIR's messages."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ShapedType, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from sdy.axes import total_size
from sdy.diagnostics import error, inferred_types_error, op_error
from sdy.dialect import ops
from sdy.dialect.attributes import (
    BLOCK_ARG_PROPAGATION_EDGES,
    PROPAGATION_EDGES,
    RESULT_PROPAGATION_EDGES,
    SHARDING,
    SHARDING_RULE,
    OpShardingRuleAttr,
    PropagationEdgesAttr,
    TensorShardingAttr,
    TensorShardingPerValueAttr,
)
from sdy.dialect.axis_syntax import quoted
from sdy.dialect.enums import PropagationDirection
from sdy.dialect.interfaces import ShardableDataFlow
from sdy.dialect.meshes import common_mesh, find_mesh, manual_axes_around, mesh_of
from sdy.dialect.propagation_edges import EdgeValue, PropagationStep
from sdy.dialect.rule_checks import rule_problem
from sdy.dialect.sharding_verifiers import bound_axis_error, verify_sharding, verify_shardings
from sdy.dialect.shardings import get_sharding, get_sharding_behind_barriers
from sdy.dialect.unreduced_transition import transition_problem
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


def verify_attributes(op: Operation) -> None:
    """Raise DiagnosticError if an attribute of the dialect on any operation is invalid."""
    for name, verify in _ATTRIBUTE_VERIFIERS.items():
        if (attribute := op.attributes.get(name)) is not None:
            verify(op, attribute)
    if isinstance(op, FuncOp):
        _verify_func_entries(op, op.arg_attrs, op.function_type.inputs.data, "arg")
        _verify_func_entries(op, op.res_attrs, op.function_type.outputs.data, "result")


def verify_module_attributes(module: Operation) -> None:
    """Raise DiagnosticError if an attribute of the dialect on any operation in `module` is invalid."""
    for op in module.walk():
        verify_attributes(op)


# Operations


def _verify_reshard(op: ops.ShardingConstraintOp | ops.ReshardOp) -> None:
    after = op.sharding.data
    verify_sharding(op, after, op.result.type)
    before = get_sharding_behind_barriers(op.input)
    if before is None:
        return
    mesh = find_mesh(after, op)
    # Axes of different meshes cannot be compared.
    if mesh is not None and mesh == find_mesh(before, op):
        problem = transition_problem([before], [after], mesh, introduces="sum", removes=before.reduction)
        if problem:
            raise op_error(op, problem)


def _verify_constant(op: ops.ConstantOp) -> None:
    inferred, actual = op.value.get_type(), op.output.type
    if inferred != actual:
        raise inferred_types_error(op, [inferred], [actual])


def _verify_barrier(op: ops.PropagationBarrierOp) -> None:
    if op.direction is PropagationDirection.BOTH:
        raise op_error(
            op,
            "cannot specify `BOTH` as the direction. Not blocking propagation direction makes the op redundant.",
        )


def _verify_edge_value(op: Operation, value: SSAValue, kind: str) -> None:
    type_ = value.type
    if not isinstance(type_, ShapedType) or not type_.has_static_shape():
        raise op_error(op, f"expected {op.name} to have a static-shaped result. type: '{type_}'")
    if not value.has_one_use():
        raise op_error(op, f"expected {kind} of {op.name} to have a single user")


def _verify_data_flow_edge(op: ops.DataFlowEdgeOp) -> None:
    _verify_edge_value(op, op.input, "input")
    source = op.input.owner
    if isinstance(source, Operation) and source.dialect_name() == "sdy" and not source.has_trait(ShardableDataFlow):
        raise op_error(
            op,
            "expected input of sdy.data_flow_edge to not be defined by an SdyDialect op (other than an "
            "sdy.named_computation).",
            (source, "sdy op defining the input of the sdy.data_flow_edge"),
        )
    if op.sharding is not None:
        verify_sharding(op, op.sharding.data, op.result.type)


def verify_func_data_flow_edge(op: ops.FuncDataFlowEdgeOp) -> None:
    """Raise DiagnosticError if an edge belongs neither to a function nor to a call."""
    _verify_edge_value(op, op.input, "operand")
    if isinstance(op.input, BlockArgument):
        if not isinstance(op.input.block.parent_op(), FuncOp):
            raise op_error(op, f"expected operand of {op.name} to be a block argument of a func op.")
    elif not isinstance(op.input.owner, CallOp):
        raise op_error(op, f"expected operand of {op.name} to be a result of call op.")


def _last(op: ops.NamedComputationOp | ops.ManualComputationOp) -> Operation:
    last = op.body.block.last_op
    assert last is not None, "a trait checks that the block has a terminator"
    return last


def _verify_named_computation(op: ops.NamedComputationOp) -> None:
    returned = _last(op)
    if tuple(returned.operand_types) != tuple(op.result_types):
        raise inferred_types_error(op, returned.operand_types, op.result_types)
    arguments = op.body.block.args
    if len(arguments) != len(op.inputs):
        raise error(
            op,
            f"number of block arguments must match the number of operands: {len(arguments)} != {len(op.inputs)}",
        )
    for index, (argument, operand) in enumerate(zip(arguments, op.inputs, strict=True)):
        if argument.type != operand.type:
            raise error(
                op,
                f"expected the type of the {index}'th block argument to match the type of the corresponding operand: "
                f"'{argument.type}' vs '{operand.type}'",
            )
    if op.in_shardings is not None:
        verify_shardings(op, op.in_shardings.data, op.operand_types, "in_shardings ")
    if op.out_shardings is not None:
        verify_shardings(op, op.out_shardings.data, op.result_types, "out_shardings ")


def _verify_manual_computation(op: ops.ManualComputationOp) -> None:
    bound = manual_axes_around(op)
    for axis in op.manual_axes.data:
        if axis in bound:
            raise bound_axis_error(op, axis, bound[axis])
    returned = _last(op)
    local_inputs = [argument.type for argument in op.body.block.args]
    _verify_manual_values(op, op.operand_types, local_inputs, op.in_shardings.data, "operand")
    _verify_manual_values(op, op.result_types, returned.operand_types, op.out_shardings.data, "result")
    shardings = op.in_shardings.data + op.out_shardings.data
    if not shardings:
        return
    mesh = common_mesh(shardings, op)
    if mesh is None and op.manual_axes.data:
        raise op_error(op, "all in and out shardings must be bound to the same mesh or an empty mesh.")
    for axis in op.manual_axes.data:
        if mesh is not None and axis not in mesh:
            raise op_error(op, f"unknown manual axis: {quoted(axis)}")


def _verify_manual_values(
    op: ops.ManualComputationOp,
    global_types: Sequence[Attribute],
    local_types: Sequence[Attribute],
    shardings: Sequence[TensorSharding],
    kind: str,
) -> None:
    """Check that the types in the body are those of the tensors outside, split over the manual axes."""
    if not (global_types or local_types or shardings):
        return
    verify_shardings(op, shardings, global_types, f"{kind} ")
    if len(global_types) != len(local_types):
        raise op_error(
            op,
            f"number of op {kind}s and region {kind}s must match. Op has {len(global_types)} op {kind}s and "
            f"{len(local_types)} region {kind}s",
        )
    manual = set(op.manual_axes.data)
    for index, (sharding, global_type, local) in enumerate(zip(shardings, global_types, local_types, strict=False)):
        _verify_manual_axes_lead(op, sharding, manual, f"{kind} sharding at index {index}")
        if isinstance(global_type, ShapedType):
            shape = _manual_shape(op, global_type.get_shape(), sharding, manual, kind)
            expected = TensorType(cast(TensorType[Attribute], global_type).element_type, shape)
            if expected != local:
                raise op_error(
                    op,
                    f"{kind} shape, corresponding sharding, and region {kind} shape at index {index} must match. "
                    f"Expected local shape '{expected}', actual local shape '{local}'",
                )


def _verify_manual_axes_lead(op: Operation, sharding: TensorSharding, manual: set[str], where: str) -> None:
    for index, dim in enumerate(sharding.dims):
        for before, axis in zip(dim.axes, dim.axes[1:], strict=False):
            if axis.name in manual and before.name not in manual:
                raise op_error(
                    op,
                    f"{where} must have all manual axes come before free axes in its dimension sharding at index "
                    f"{index}. Saw manual axis {axis} after free axis {before}",
                )


def _manual_shape(
    op: Operation, shape: Sequence[int], sharding: TensorSharding, manual: set[str], kind: str
) -> list[int]:
    mesh = mesh_of(sharding, op)
    local: list[int] = []
    for size, dim in zip(shape, sharding.dims, strict=False):
        parts = total_size((axis for axis in dim.axes if axis.name in manual), mesh)
        if size >= 0 and size % parts:
            raise op_error(op, f"{kind} dimension size {size} is not divisible by the manual axes size {parts}")
        local.append(size // parts if size >= 0 else size)
    return local


OPERATION_CHECKS: dict[type[Operation], Callable[[Any], None]] = {
    ops.ShardingConstraintOp: _verify_reshard,
    ops.ReshardOp: _verify_reshard,
    ops.ConstantOp: _verify_constant,
    ops.PropagationBarrierOp: _verify_barrier,
    ops.DataFlowEdgeOp: _verify_data_flow_edge,
    ops.FuncDataFlowEdgeOp: verify_func_data_flow_edge,
    ops.NamedComputationOp: _verify_named_computation,
    ops.ManualComputationOp: _verify_manual_computation,
}
"""Verifier of each class of operations except collectives."""


# Attributes


def _verify_result_shardings(op: Operation, attribute: Attribute) -> None:
    if not isinstance(attribute, TensorShardingPerValueAttr):
        raise op_error(op, "should have a sharding attribute of type TensorShardingPerValueAttr")
    verify_shardings(op, attribute.data, op.result_types, "result ")


def _verify_func_entries(
    func: FuncOp, entries: ArrayAttr[DictionaryAttr] | None, types: Sequence[Attribute], kind: str
) -> None:
    for index, (entry, type_) in enumerate(zip(entries or (), types, strict=False)):
        if not all("." in name for name in entry.data):
            raise op_error(func, f"{'arguments' if kind == 'arg' else 'results'} may only have dialect attributes")
        if (attribute := entry.data.get(SHARDING)) is None:
            continue
        prefix = f"{kind} {index} - "
        if not isinstance(attribute, TensorShardingAttr):
            raise op_error(func, f"{prefix}should have a sharding attribute of type TensorShardingAttr")
        verify_sharding(func, attribute.data, type_, prefix)


def _verify_rule(op: Operation, attribute: Attribute) -> None:
    if not isinstance(attribute, OpShardingRuleAttr):
        raise op_error(
            op,
            f"should have a sharding rule attribute of type OpShardingRuleAttr for attr named '{SHARDING_RULE}'",
        )
    if problem := rule_problem(attribute.data, op.operand_types, op.result_types):
        raise op_error(op, problem)


def _verify_propagation_edges(op: Operation, attribute: Attribute) -> None:
    if not isinstance(attribute, PropagationEdgesAttr):
        raise op_error(
            op,
            "should have a propagation edges attribute of type PropagationEdgesAttr for attr named "
            f"'{PROPAGATION_EDGES}'",
        )
    edges = [edge for step in cast(Sequence[PropagationStep], attribute.data) for edge in step.edges]
    named = [value for edge in edges for value in (edge.source, *edge.targets)]
    shardings = [sharding for value in named if (sharding := _sharding_of_edge_value(op, value)) is not None]
    if not shardings:
        raise op_error(op, "expected propagation edges attr to reference a sharding.")
    mesh: Mesh | None = common_mesh(shardings, op)
    if mesh is None:
        raise op_error(op, "expected a common mesh for propagation edges attr.")
    for edge in edges:
        if edge.axis.name not in mesh:
            raise op_error(op, "expected axis ref to be in one of the meshes")
        for value in (edge.source, *edge.targets):
            _verify_edge_value_index(op, value)


def _values(op: Operation, value: EdgeValue) -> Sequence[SSAValue]:
    return op.operands if value.node == "operand" else op.results


def _sharding_of_edge_value(op: Operation, value: EdgeValue) -> TensorSharding | None:
    values = _values(op, value)
    return get_sharding(values[value.index]) if 0 <= value.index < len(values) else None


def _verify_edge_value_index(op: Operation, value: EdgeValue) -> None:
    count = len(_values(op, value))
    # In the record of a data-flow edge, operand indices refer to its sources.
    if not 0 <= value.index < count and not isinstance(op, ops.DataFlowEdgeOp | ops.FuncDataFlowEdgeOp):
        article = "an" if value.node == "operand" else "a"
        raise op_error(
            op,
            f"expected a value ref to have {article} {value.node} index in range [0, {count}), got: {value.index}",
        )


def _verify_propagation_edge_lists(op: Operation, attribute: Attribute) -> None:
    if not isa(attribute, ArrayAttr[PropagationEdgesAttr]):
        raise op_error(
            op,
            "should have a propagation edges attribute of type ArrayAttr<PropagationEdgesAttr> for attr named "
            f"'{RESULT_PROPAGATION_EDGES}' or '{BLOCK_ARG_PROPAGATION_EDGES}'",
        )


_ATTRIBUTE_VERIFIERS: dict[str, Callable[[Operation, Attribute], None]] = {
    BLOCK_ARG_PROPAGATION_EDGES: _verify_propagation_edge_lists,
    PROPAGATION_EDGES: _verify_propagation_edges,
    RESULT_PROPAGATION_EDGES: _verify_propagation_edge_lists,
    SHARDING: _verify_result_shardings,
    SHARDING_RULE: _verify_rule,
}
"""Verifiers in the order of attribute names, as in MLIR, so that the first error is the same."""
