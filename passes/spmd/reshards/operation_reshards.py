"""Insert the reshards and all-reduces around one operation that make its shardings compatible."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from xdsl.ir import Operation, OpResult, Use
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef, subtract
from sdy.diagnostics import op_error
from sdy.dialect.collectives import AllReduceOp
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, get_sharding_behind_barriers, result_shardings, set_sharding
from sdy.ir.editing import insert_for_other_uses, insert_for_use
from sdy.ir.shapes import num_elements, rank
from sdy.mesh import Mesh
from sdy.operators.registry import operator_rule_of
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.common.replication_cost import current_shardings
from sdy.passes.spmd.operator_parts import summed_axes_of_results
from sdy.passes.spmd.reshards.concatenated_parts import rule_of_exchange
from sdy.passes.spmd.reshards.convolution_factors import rule_of_convolution
from sdy.passes.spmd.reshards.custom_rules import warn_of_what_is_whole, whole_unless_passing_through
from sdy.passes.spmd.reshards.dot_plan import plan_dot_result
from sdy.passes.spmd.reshards.operation_plan import (
    OperationShardings,
    Tensors,
    choose_mesh,
    plan_operation,
    summed_axes,
)
from sdy.passes.spmd.reshards.reduction_kinds import operation_reduction
from sdy.passes.spmd.reshards.refused_identifiers import (
    identifiers_cut_unevenly,
    refused_identifiers,
    warn_of_refused_identifiers,
)
from sdy.passes.spmd.reshards.scattered_elements import rule_of_scatter
from sdy.passes.spmd.reshards.single_device import insert_single_device_reshards, runs_on_one_device
from sdy.passes.spmd.reshards.top_k_factors import rule_of_top_k
from sdy.passes.spmd.reshards.unreduced import combine_for_use
from sdy.passes.spmd.reshards.unreduced_plan import in_mesh_order
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import Reduction, TensorSharding
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp

_DOTS = {DotOp, DotGeneralOp}


Compatible: TypeAlias = dict[tuple[type[Operation], tuple[TensorSharding | None, ...]], set[OpShardingRule]]
"""Memo of compatible operations without regions: sharding rules by class and shardings.

An entry is valid for one value of `in_full` per class.
"""


def reshard_around(
    op: Operation, in_full: bool, least_communication: bool, compatible: Compatible, manual_axes: ManualAxes
) -> None:
    """Reshard operands and results of `op` such that their shardings are compatible, and all-reduce partial results.

    Args:
        op: The operation.
        in_full: Whether to insert all reshards. Otherwise only reductions along unreduced axes become explicit, and the
            result of a dot product may be resharded where that is cheaper.
        least_communication: Whether to minimize the bytes received. Operands may then be gathered instead of
            all-reducing partial results, a concatenation may stay split along its dimension (devices exchange rows in
            `sdy-resolve-permutation-factors`), and user-written rules apply to more than annotated operators.
        compatible: Memo of the operations of this module that need no reshards, with these options. Most operations of
            a deep model repeat an earlier one.
        manual_axes: The manual axes around operations of the module.
    """
    shardings = _shardings(op)
    if (rules := compatible.get((op.__class__, shardings))) and sharding_rule(op) in rules:
        return
    if any(sharding and sharding.unreduced for sharding in map(get_sharding, op.operands)):
        _combine_operands(op)
        shardings = _shardings(op)
    if runs_on_one_device(op, shardings[len(op.operands) :] or result_shardings(op)):
        insert_single_device_reshards(op)
        return
    is_dot = op.__class__ in _DOTS
    if not (in_full or is_dot or any(sharding and sharding.unreduced for sharding in shardings)):
        return
    named = {sharding.mesh: sharding for sharding in shardings if sharding is not None}
    meshes = {name: mesh_of(sharding, op) for name, sharding in named.items()}
    mesh_name = choose_mesh(shardings, meshes)
    rule = sharding_rule(op) if mesh_name is not None else None
    operator = operator_rule_of(op)
    if mesh_name is None or rule is None:
        return
    own_rule = rule
    is_custom = rule.is_custom and operator is None
    if is_custom and not least_communication:
        return
    mesh = meshes[mesh_name]
    if is_custom:
        rule = whole_unless_passing_through(rule)
    # Computed before reshards are inserted, which would hide the constant initial values of sums.
    reduction = operation_reduction(op)
    if reduction is None:
        # No collective combines the partial results: replicate the reduction factors.
        rule = rule.with_replicated(rule.reduction)
    elif least_communication:
        # A sum over zero elements needs no all-reduce.
        rule = rule.with_replicated([factor for factor in rule.reduction if rule.factor_sizes[factor] == 0])
    if least_communication and isinstance(op, ConcatenateOp):
        rule = rule_of_exchange(op, rule, shardings)
    if least_communication and isinstance(op, ConvolutionOp):
        rule = rule_of_convolution(rule, shardings, mesh)
    if least_communication and isinstance(op, ScatterOp):
        rule = rule_of_scatter(op, rule)
    if least_communication and isinstance(op, CustomCallOp):
        rule = rule_of_top_k(op, rule)
    tensors = Tensors(rule, shardings, tuple(map(num_elements, (*op.operands, *op.results))))
    if in_full:
        choose = plan_operation
        if least_communication:
            from sdy.passes.spmd.reshards.cheapest_operation import cheapest_operation

            choose = partial(cheapest_operation, op)
        plan = choose(tensors, mesh_name, meshes, reshapes=isinstance(op, ReshapeOp))
        refused = {} if operator is None else refused_identifiers(op, operator, plan.axes_per_factor, mesh)
        if operator is not None and refused:
            rule = rule.with_replicated([operator.factors[name] for name in refused])
            plan = choose(replace(tensors, rule=rule), mesh_name, meshes, reshapes=False)
        if is_dot and least_communication:
            from sdy.passes.spmd.reshards.spread_dot import spread

            plan = spread(op, tensors, plan, mesh_name, mesh, manual_axes.free(op, mesh))
        # The plan of a dynamic slice depends on the loops around it, so that it is not memoized.
        is_plain = not (op.regions or operator or is_custom or isinstance(op, DynamicSliceOp))
        if is_plain and not (any(plan.shardings) or plan.reduction_axes):
            compatible.setdefault((op.__class__, shardings), set()).add(own_rule)
        if operator is not None:
            refused = {**identifiers_cut_unevenly(operator, shardings, mesh), **refused}
        before = current_shardings(op) if is_custom or refused else []
        _reshard_operation(op, plan, mesh_name)
        if is_custom:
            warn_of_what_is_whole(op, plan, before, mesh)
        elif operator is not None and refused:
            warn_of_refused_identifiers(op, operator, refused, before)
        if operator is None:
            partial_axes = [plan.reduction_axes] * len(op.results)
        else:
            partial_axes = summed_axes_of_results(operator, plan.axes_per_factor)
    else:
        partial_axes = [_declared_reduction_axes(op, tensors, mesh)] * len(op.results)
        if is_dot and shardings[-1] is not None:
            result_sharding = plan_dot_result(tensors, mesh_name, mesh)
            if result_sharding is not None:
                _compute_with(op.results[0], result_sharding, shardings[-1], InsertPoint.after(op))
            elif operator is None and not any(partial_axes):
                compatible.setdefault((op.__class__, shardings), set()).add(own_rule)
    if reduction is not None:
        _combine_results(op, partial_axes, reduction, mesh_name, mesh)


def _shardings(op: Operation) -> tuple[TensorSharding | None, ...]:
    """Return the shardings of the operands, then of the results."""
    return tuple([get_sharding_behind_barriers(value) for value in (*op.operands, *op.results)])


def _combine_operands(op: Operation) -> None:
    """All-reduce the operands along the unreduced axes that the results do not have.

    Raises:
        DiagnosticError: If `op` has no results, or results with different unreduced axes.
    """
    if not op.results:
        raise op_error(op, "has operands with unreduced axes, but no results")
    results = [get_sharding(result) for result in op.results]
    if len({sharding.unreduced if sharding else () for sharding in results}) > 1:
        raise op_error(op, "has results with different unreduced axes")
    for index in range(len(op.operands)):
        combine_for_use(Use(op, index), results[0], InsertPoint.before(op))


def _reshard_operation(op: Operation, plan: OperationShardings, mesh_name: str | Mesh) -> None:
    """Insert the reshards of operands and results that `plan` requires."""
    if not any(plan.shardings):
        return
    before, after = InsertPoint.before(op), InsertPoint.after(op)
    for index, sharding in enumerate(plan.shardings):
        if sharding is None:
            continue
        if index < len(op.operands):
            insert_for_use(Use(op, index), ReshardOp(op.operands[index], sharding), before)
        else:
            result = op.results[index - len(op.operands)]
            wanted = get_sharding(result) or TensorSharding.replicated_closed(mesh_name, sharding.rank)
            _compute_with(result, sharding, wanted, after)


def _compute_with(result: OpResult, sharding: TensorSharding, wanted: TensorSharding, at: InsertPoint) -> None:
    """Set the sharding of `result`, and insert a reshard to `wanted` for its users."""
    insert_for_other_uses(result, ReshardOp(result, wanted), at)
    set_sharding(result, sharding)


def _declared_reduction_axes(op: Operation, tensors: Tensors, mesh: Mesh) -> Sequence[AxisRef]:
    """Return the reduction axes of `op` if its results have unreduced axes, that is, if all-reduces are explicit.

    Raises:
        DiagnosticError: If the operands disagree on the axes of a reduction factor.
    """
    sharding = get_sharding(op.results[0]) if op.results else None
    if sharding is None or not sharding.unreduced:
        return ()
    axes = summed_axes(tensors, sharding.mesh, mesh)
    if axes is None:
        raise op_error(
            op,
            "has results with unreduced axes, but operands split over different axes along a reduced dimension",
        )
    return axes


def _is_combined(result: OpResult, axes: Sequence[AxisRef]) -> bool:
    """Return whether all users of `result` are all-reduces over `axes`, inserted by an earlier pass."""
    users = [use.operation for use in result.uses]
    return bool(users) and all(
        isinstance(user, AllReduceOp) and tuple(user.reduction_axes.data) == tuple(axes) for user in users
    )


def _combine_results(
    op: Operation, axes_of_results: Sequence[Sequence[AxisRef]], reduction: Reduction, mesh_name: str | Mesh, mesh: Mesh
) -> None:
    """Insert an all-reduce of each result over the axes along which it is partial, except for its unreduced axes."""
    if not any(axes_of_results):
        return
    first = get_sharding(op.results[0])
    unreduced = first.unreduced if first else ()
    at = InsertPoint.after(op)
    for result, axes in zip(op.results, axes_of_results, strict=True):
        partial = in_mesh_order(subtract(axes, unreduced, mesh), mesh)
        if partial and not _is_combined(result, partial):
            sharding = get_sharding(result) or TensorSharding.replicated_closed(mesh_name, rank(result.type))
            insert_for_other_uses(result, AllReduceOp(result, partial, sharding, reduction), at)
