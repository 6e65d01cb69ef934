"""Verifiers of collectives, with MLIR's messages.

`out_sharding` must be the sharding that the collective produces from its operand's sharding.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sdy.axes import Axes, AxisRef, merge_sub_axes, mesh_order
from sdy.diagnostics import op_error
from sdy.dialect import collectives
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.mesh_syntax import mesh_text
from sdy.dialect.meshes import mesh_of
from sdy.dialect.sharding_checks import AxisCheck
from sdy.dialect.sharding_verifiers import verify_sharding
from sdy.dialect.shardings import get_sharding
from sdy.dialect.unreduced_transition import transition_problem
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


def _verify_collective(op: CollectiveOp) -> None:
    """Raise DiagnosticError if a collective is invalid."""
    before, after = get_sharding(op.tensor), op.out_sharding.data
    if before is None and not op.ALLOWS_MISSING_SHARDING:
        raise op_error(op, "collective on operand without sharding")
    verify_sharding(op, after, op.result.type)
    mesh = mesh_of(after, op)
    if before is None:
        before = TensorSharding.replicated_closed(after.mesh, after.rank)
    else:
        mesh_before = mesh_of(before, op)
        if mesh != mesh_before and not op.ALLOWS_OTHER_MESH:
            raise op_error(op, "result mesh does not match operand mesh", (op.tensor, _mesh_note(mesh_before)))
        if after.rank != before.rank:
            raise op_error(op, f"result sharding has rank {after.rank} but operand sharding has rank {before.rank}")
    _VERIFIERS[type(op)](op, before, after, mesh)


def _mesh_note(mesh: Mesh) -> str:
    return f"operand mesh: #sdy.mesh{mesh_text(mesh)}"


# Effect of collectives on axes


def _gathered(op: CollectiveOp, axes: Axes, gathered: Axes, dim: int, mesh: Mesh, kind: str) -> Axes:
    """Return `axes` of dimension `dim` without its suffix `gathered`."""
    remaining = list(axes)
    for axis in reversed(gathered):
        if not remaining or not axis.is_suffix_of(remaining[-1], mesh):
            raise op_error(op, f"can't apply {kind} axis {axis} to operand sharding on dimension {dim}")
        prefix = remaining.pop().prefix_without_overlap(axis)
        if prefix is not None:
            remaining.append(prefix)
    return tuple(remaining)


def _sliced(axes: Axes, added: Axes, mesh: Mesh) -> Axes:
    """Return `axes` with `added` appended."""
    extended = list(axes)
    for axis in added:
        if extended and extended[-1].can_merge(axis):
            extended[-1] = extended[-1].merge(axis, mesh)
        else:
            extended.append(axis)
    return tuple(extended)


def _expect_dim(op: CollectiveOp, after: TensorSharding, dim: int, expected: Axes) -> None:
    if after.dims[dim].axes != expected:
        listed = ", ".join(map(str, expected))
        raise op_error(op, f"result sharding doesn't match expected sharding [{listed}] on dimension {dim}")


def _check_axes(op: CollectiveOp, lists: Sequence[Axes], mesh: Mesh) -> None:
    check = AxisCheck(mesh)
    for axes in lists:
        if problem := check.problem(axes):
            raise op_error(op, problem)


def _verify_per_dim(
    op: CollectiveOp,
    before: TensorSharding,
    after: TensorSharding,
    mesh: Mesh,
    lists: Sequence[Axes],
    apply: Callable[[Axes, Axes, int], Axes],
) -> None:
    """Verify a collective that changes the axes of each dimension by a list of axes."""
    _check_axes(op, lists, mesh)
    if after.rank != len(lists):
        raise op_error(op, f"result sharding has rank {after.rank} but collective axes has rank {len(lists)}")
    for dim, (old, axes) in enumerate(zip(before.dims, lists, strict=True)):
        _expect_dim(op, after, dim, apply(old.axes, axes, dim))


def _sorted(axes: Sequence[AxisRef], mesh: Mesh) -> Axes:
    return merge_sub_axes(sorted(axes, key=mesh_order(mesh)), mesh)


def _check_transition(
    op: collectives.AllReduceOp | collectives.ReduceScatterOp,
    before: TensorSharding,
    after: TensorSharding,
    mesh: Mesh,
) -> None:
    if problem := transition_problem([before], [after], mesh, introduces=None, removes=op.reduction):
        raise op_error(op, problem)


# Collectives


def _verify_all_gather(op: collectives.AllGatherOp, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> None:
    def apply(axes: Axes, gathered: Axes, dim: int) -> Axes:
        return _gathered(op, axes, gathered, dim, mesh, "gathering")

    _verify_per_dim(op, before, after, mesh, op.gathering_axes.data, apply)


def _verify_all_slice(op: collectives.AllSliceOp, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> None:
    _verify_per_dim(op, before, after, mesh, op.slicing_axes.data, lambda axes, new, _: _sliced(axes, new, mesh))


def _verify_reduce_scatter(
    op: collectives.ReduceScatterOp, before: TensorSharding, after: TensorSharding, mesh: Mesh
) -> None:
    _check_transition(op, before, after, mesh)
    lists = op.reduce_scatter_axes.data
    _verify_per_dim(op, before, after, mesh, lists, lambda axes, new, _: _sliced(axes, new, mesh))


def _verify_sharded_to_unreduced(
    op: collectives.ShardedToUnreducedOp, before: TensorSharding, after: TensorSharding, mesh: Mesh
) -> None:
    if after.reduction != "sum":
        raise op_error(op, "out_sharding reduction_op must be SUM")

    def apply(axes: Axes, gathered: Axes, dim: int) -> Axes:
        return _gathered(op, axes, gathered, dim, mesh, "shard-to-unreduce")

    _verify_per_dim(op, before, after, mesh, op.axes.data, apply)
    moved = [axis for axes in op.axes.data for axis in axes]
    if _sorted([*before.unreduced, *moved], mesh) != after.unreduced:
        raise op_error(op, "out_unreduced_axes should be in_unreduced_axes + sharded_to_unreduced_axes")


def _verify_replicated_to_unreduced(
    op: collectives.ReplicatedToUnreducedOp, before: TensorSharding, after: TensorSharding, mesh: Mesh
) -> None:
    if after.reduction != "sum":
        raise op_error(op, "out_sharding reduction_op must be SUM")
    if before.dims != after.dims:
        raise op_error(op, "input and output must share the same dimension shardings")
    axes = op.axes.data
    if not axes:
        raise op_error(op, "r2u axes must not be empty")
    if problem := AxisCheck(mesh).ordered_problem(axes, "r2u"):
        raise op_error(op, problem)
    for axis in axes:
        if any(map(axis.overlaps, (used for dim in before.dims for used in dim.axes))):
            raise op_error(op, f"r2u axis {axis} overlaps with operand dimension sharding")
        if any(map(axis.overlaps, before.unreduced)):
            raise op_error(op, f"r2u axis {axis} overlaps with operand unreduced axes")
    if _sorted([*before.unreduced, *axes], mesh) != after.unreduced:
        raise op_error(op, "out_unreduced_axes should be in_unreduced_axes + r2u_axes")


def _verify_all_to_all(op: collectives.AllToAllOp, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> None:
    params = op.params.data
    if not params:
        raise op_error(op, "parameter list is empty")
    check = AxisCheck(mesh)
    involved: set[int] = set()
    previous = -1
    for param in params:
        if problem := check.problem(param.axes):
            raise op_error(op, problem)
        for dim, end in ((param.src_dim, "source"), (param.tgt_dim, "target")):
            if not 0 <= dim < after.rank:
                raise op_error(op, f"{end} dimension {dim} is out of range [0, {after.rank})")
        for dim in (param.src_dim, param.tgt_dim):
            if dim in involved:
                raise op_error(op, f"overlapping source/target dimensions in all-to-all params: {dim}")
            involved.add(dim)
        if previous >= param.src_dim:
            raise op_error(
                op, f"source dimensions are not sorted in ascending order: {param.src_dim} appears after {previous}"
            )
        previous = param.src_dim
    for param in params:
        source, target = before.dims[param.src_dim].axes, before.dims[param.tgt_dim].axes
        remaining = _gathered(op, source, param.axes, param.src_dim, mesh, "all-to-all")
        _expect_dim(op, after, param.src_dim, remaining)
        _expect_dim(op, after, param.tgt_dim, _sliced(target, param.axes, mesh))
    for dim, old in enumerate(before.dims):
        if dim not in involved:
            _expect_dim(op, after, dim, old.axes)


def _verify_collective_permute(
    op: collectives.CollectivePermuteOp, before: TensorSharding, after: TensorSharding, mesh: Mesh
) -> None:
    mesh_before = mesh_of(before, op)
    note = (op.tensor, _mesh_note(mesh_before))
    if mesh.axes != mesh_before.axes:
        raise op_error(op, "result mesh has different axes than operand mesh", note)
    if before.mesh != after.mesh and mesh.device_ids == mesh_before.device_ids:
        raise op_error(op, "result mesh name is different but same device ids as operand", note)
    for dim, (old, new) in enumerate(zip(before.dims, after.dims, strict=True)):
        old_size, new_size = old.sharded_size(mesh), new.sharded_size(mesh)
        if old_size != new_size:
            raise op_error(
                op,
                f"sharded size of result doesn't match operand on dimension {dim}: {new_size} != {old_size}",
            )


def _verify_all_reduce(op: collectives.AllReduceOp, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> None:
    both_replicated = before.is_fully_replicated and after.is_fully_replicated
    if not both_replicated and (before.mesh != after.mesh or before.dim_axes != after.dim_axes):
        raise op_error(op, "operand and result shardings are not equivalent")
    axes = op.reduction_axes.data
    if problem := AxisCheck(mesh).ordered_problem(axes, "reduction"):
        raise op_error(op, problem)
    for axis in axes:
        if any(map(axis.overlaps, (*(used for dim in before.dims for used in dim.axes), *before.replicated))):
            raise op_error(op, f"reduction axis {axis} overlaps with operand dimension sharding or replicated axes")
        if any(map(axis.overlaps, after.unreduced)):
            raise op_error(op, f"reduction axis {axis} overlaps with result unreduced axes")
    _check_transition(op, before, after, mesh)


_VERIFIERS: dict[type[CollectiveOp], Callable[[Any, TensorSharding, TensorSharding, Mesh], None]] = {
    collectives.AllGatherOp: _verify_all_gather,
    collectives.AllReduceOp: _verify_all_reduce,
    collectives.AllSliceOp: _verify_all_slice,
    collectives.AllToAllOp: _verify_all_to_all,
    collectives.CollectivePermuteOp: _verify_collective_permute,
    collectives.ReduceScatterOp: _verify_reduce_scatter,
    collectives.ReplicatedToUnreducedOp: _verify_replicated_to_unreduced,
    collectives.ShardedToUnreducedOp: _verify_sharded_to_unreduced,
}

COLLECTIVE_CHECKS = dict.fromkeys(_VERIFIERS, _verify_collective)
"""Verifier of each class of collectives."""
