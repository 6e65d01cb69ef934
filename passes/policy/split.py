"""`split`: manual partitioning of an operation along one of its dimensions."""

from collections.abc import Iterator
from dataclasses import replace

from xdsl.ir import Operation, Use
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef, is_prefix, merge_sub_axes
from sdy.diagnostics import LostShardingWarning, error, warn
from sdy.dialect.meshes import enclosing_module, named_meshes
from sdy.dialect.ops import ShardingConstraintOp
from sdy.dialect.sharding_syntax import dim_sharding_text, sharding_text
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import insert_for_use
from sdy.mesh import Mesh
from sdy.operators.call import call_of
from sdy.operators.registry import operator_of, operator_rule_of
from sdy.passes.common.manual_axes import ManualAxes
from sdy.rule import FactorKind, OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding


def split(op: Operation, *, operand: int, dim: int, axis: str, num: int | None = None) -> None:
    """Partition `op` along dimension `dim` of operand number `operand`, over a mesh axis.

    Every tensor of `op` with the factor of that dimension is sharded; the others are replicated or partial sums, by the
    sharding rule. Operands are constrained for this operation only. All other dimensions remain open to propagation.
    Successive calls split an operation along several dimensions, or a dimension over several axes. An operand with a
    conflicting sharding is resharded for this operation, with a warning.

    Args:
        op: The operation.
        operand: The number of the operand.
        dim: The dimension of the operand.
        axis: The name of the mesh axis.
        num: The number of shards, as in nnScaler, by default the size of the axis. A smaller number uses the next major
            sub-axis that does not split the operation yet: an axis of size 8 can split one dimension in 2 and another
            one in 4.

    Raises:
        DiagnosticError: If the operation cannot be split this way.
    """
    try:
        shardings = _new_shardings(op, operand, dim, axis, num)
    except _CannotSplitError as reason:
        title, argument = _describe(op, operand)
        raise error(op, f"{title} cannot be split along dimension {dim} of {argument}: {reason}") from None
    for tensor, sharding in shardings.items():
        _warn_of_dropped_axes(op, tensor, sharding)
        _set_sharding(op, tensor, sharding)


class _CannotSplitError(Exception):
    """The reason why an operation cannot be split."""


def _describe(op: Operation, operand: int) -> tuple[str, str]:
    """Return the names of an operation and its operand for messages."""
    call = call_of(op)
    operator = operator_of(call) if call else None
    if call is None or operator is None:
        return f"'{op.name}' op", f"operand {operand}"
    arguments = operator.tensor_names(call)
    name = f"argument '{arguments[operand]}'" if operand < len(arguments) else f"operand {operand}"
    return f"operator '{call.name}'", name


def _new_shardings(op: Operation, operand: int, dim: int, axis: str, num: int | None) -> dict[int, TensorSharding]:
    """Return the new shardings of the tensors of `op` that are split, by number: operands, then results."""
    rule = sharding_rule(op)
    if rule is None:
        raise _CannotSplitError("it has no sharding rule")
    if not 0 <= operand < len(rule.operands) or not 0 <= dim < len(rule.operands[operand]):
        raise _CannotSplitError("it has no such dimension")
    factor = rule.operands[operand][dim][0]
    if reason := _replication_reason(op, rule, factor):
        raise _CannotSplitError(reason)
    mesh_name, mesh = _mesh_with(op, axis)
    if AxisRef(axis) not in _free_axes(op, mesh):
        raise _CannotSplitError(f"axis '{axis}' is manual around it: values are local shards along it already")
    sub_axis = AxisRef(axis) if num is None else _next_sub_axis(op, axis, num, mesh)
    shardings: dict[int, TensorSharding] = {}
    for tensor, place in _dims_with_factor(rule, factor):
        name = f"operand {tensor}" if tensor < len(op.operands) else f"result {tensor - len(op.operands)}"
        current = _current_sharding(op, tensor) or TensorSharding.replicated_open(mesh_name, len(rule.tensors[tensor]))
        if len(current.dims) != len(rule.tensors[tensor]):
            raise _CannotSplitError(f"{name} is on a single device")
        if rule.tensors[tensor][place][0] != factor:
            raise _CannotSplitError(f"it is not the first factor of dimension {place} of {name}")
        for index, axes in enumerate(current.dim_axes):
            if any(sub_axis.overlaps(other) for other in axes):
                raise _CannotSplitError(f"axis '{axis}' already shards dimension {index} of {name}")
        part = current.dims[place]
        if part.is_closed:
            raise _CannotSplitError(f"dimension {place} of {name} has the closed sharding {dim_sharding_text(part)}")
        part = replace(part, axes=merge_sub_axes((*part.axes, sub_axis), mesh))
        size, num_shards = rule.factor_sizes[factor], part.sharded_size(mesh)
        if size % num_shards:
            raise _CannotSplitError(f"its size {size} is not divisible by {num_shards} shards")
        shardings[tensor] = current.with_dim(place, part)
    return shardings


def _next_sub_axis(op: Operation, axis: str, num: int, mesh: Mesh) -> AxisRef:
    """Return the sub-axis of size `num` that follows those already sharding the operation."""
    size = mesh.axis_size(axis)
    shardings = [_current_sharding(op, tensor) for tensor in range(len(op.operands) + len(op.results))]
    axes_in_use = [
        used for sharding in shardings if sharding for axes in sharding.dim_axes for used in axes if used.name == axis
    ]
    start = max((used.end_in(mesh) for used in axes_in_use), default=1)
    remaining = size // start
    if num < 2 or remaining % num:
        rest = f", with {remaining} remaining" if start > 1 else ""
        raise _CannotSplitError(f"num={num} must be at least 2 and divide axis '{axis}' of size {size}{rest}")
    return AxisRef(axis) if num == size else AxisRef(axis, start, num)


def _replication_reason(op: Operation, rule: OpShardingRule, factor: int) -> str | None:
    """Return the reason why a factor must be replicated, None if it can be sharded."""
    operator = operator_rule_of(op)
    names = [] if operator is None else [name for name, number in operator.factors.items() if number == factor]
    if operator is not None and names:
        return operator.fitted.annotation.unshardable_reason(names[0])
    if operator is not None and factor in rule.need_replication:
        return "it is a scalar, which cannot be sharded"
    kind = rule.kind(factor)
    if kind is FactorKind.NEED_REPLICATION:
        return "the operation requires it replicated"
    if kind is FactorKind.PERMUTATION:
        return "a device would need data of other devices"
    if kind is FactorKind.PASS_THROUGH and not any(factor in dim for result in rule.results for dim in result):
        return "no result has it, and the sharding rule does not declare it as a reduction"
    return None


def _mesh_with(op: Operation, axis: str) -> tuple[str, Mesh]:
    """Return the module's mesh with the axis, and its name."""
    module = enclosing_module(op)
    meshes = {} if module is None else named_meshes(module)
    candidates = [(name, mesh) for name, mesh in meshes.items() if axis in mesh]
    if not candidates:
        known = ", ".join(f"'{name}'" for mesh in meshes.values() for name in mesh)
        raise _CannotSplitError(
            f"no mesh of the module has an axis '{axis}', only {known}" if known else "the module has no mesh"
        )
    if len(candidates) > 1:
        raise _CannotSplitError(f"several meshes of the module have an axis '{axis}'")
    return candidates[0]


def _free_axes(op: Operation, mesh: Mesh) -> tuple[AxisRef, ...]:
    module = enclosing_module(op)
    return () if module is None else ManualAxes(module).free(op, mesh)


def _dims_with_factor(rule: OpShardingRule, factor: int) -> Iterator[tuple[int, int]]:
    """Yield the tensors and dimensions with a factor."""
    for tensor, mapping in enumerate(rule.tensors):
        for dim, factors in enumerate(mapping):
            if factor in factors:
                yield tensor, dim


def _constraint(op: Operation, operand: int) -> ShardingConstraintOp | None:
    """Return the open constraint that an earlier `split` inserted for this operand only."""
    constraint = op.operands[operand].owner
    if not isinstance(constraint, ShardingConstraintOp) or constraint.result.has_more_than_one_use():
        return None
    return constraint if not any(dim.is_closed for dim in constraint.sharding.data.dims) else None


def _current_sharding(op: Operation, tensor: int) -> TensorSharding | None:
    """Return the sharding that earlier splits gave a tensor."""
    if tensor >= len(op.operands):
        return get_sharding(op.results[tensor - len(op.operands)])
    constraint = _constraint(op, tensor)
    return None if constraint is None else constraint.sharding.data


def _warn_of_dropped_axes(op: Operation, tensor: int, sharding: TensorSharding) -> None:
    """Warn if `sharding` drops axes of the operand's own sharding that earlier splits kept."""
    if tensor >= len(op.operands):
        return
    constraint = _constraint(op, tensor)
    value = op.operands[tensor] if constraint is None else constraint.input
    if (own := get_sharding(value)) is None:
        return
    before = () if constraint is None else _conflicting_dims(own, constraint.sharding.data)
    for dim in _conflicting_dims(own, sharding):
        if dim not in before:
            title, argument = _describe(op, tensor)
            current = f"dimension {dim} of {argument} is sharded as {dim_sharding_text(own.dims[dim])}"
            warn(
                op,
                f"{title}: {current}, which is replaced by {sharding_text(sharding)} for this operation",
                (value, "the tensor is defined here"),
                category=LostShardingWarning,
            )


def _conflicting_dims(own: TensorSharding, chosen: TensorSharding) -> list[int]:
    """Return the dimensions whose axes in `own` conflict with the open sharding `chosen`."""
    axes_in_use = [axis for axes in chosen.dim_axes for axis in axes]
    conflicts: list[int] = []
    for dim, (had, has) in enumerate(zip(own.dim_axes, chosen.dim_axes, strict=False)):
        elsewhere = [axis for axis in axes_in_use if axis not in has]
        goes_on = is_prefix(had, has) or is_prefix(has, had)
        if not goes_on or any(axis.overlaps(other) for axis in had for other in elsewhere):
            conflicts.append(dim)
    return conflicts


def _set_sharding(op: Operation, tensor: int, sharding: TensorSharding) -> None:
    if tensor >= len(op.operands):
        set_sharding(op.results[tensor - len(op.operands)], sharding)
    elif (constraint := _constraint(op, tensor)) is not None:
        set_sharding(constraint.result, sharding)
    else:
        new = ShardingConstraintOp(op.operands[tensor], sharding)
        insert_for_use(Use(op, tensor), new, InsertPoint.before(op))
