"""Operations of the SDY dialect: constraints, manual computations, and reshards."""

from collections.abc import Collection

from xdsl.ir import Operation, Region

from sdy import stablehlo
from sdy.axes import AxisRef
from sdy.dialect import collectives, ops
from sdy.dialect.meshes import mesh_of
from sdy.mesh import Mesh
from sdy.passes.python.device_axes import DeviceAxes, axes_text, string
from sdy.passes.python.expressions import Expression, call, tuple_of
from sdy.passes.python.scope import Printer, Scope
from sdy.passes.python.shaping import SHAPING
from sdy.sharding import TensorSharding

_Collective = (
    collectives.AllGatherOp
    | collectives.AllReduceOp
    | collectives.AllSliceOp
    | collectives.AllToAllOp
    | collectives.CollectivePermuteOp
    | collectives.ReduceScatterOp
)


def spec(
    sharding: TensorSharding | None, where: Operation, axes: DeviceAxes, only: Collection[str] | None = None
) -> Expression:
    """Return the `PartitionSpec` of a sharding; dimensions at the end that are not sharded are left out.

    Args:
        sharding: The sharding; None is replicated.
        where: An operation of the module, for its meshes.
        axes: The axes of the devices.
        only: The names of the axes to keep, by default all.

    Raises:
        NotImplementedError: The sharding is on a single device.
    """
    if sharding is None:
        return Expression("P()")
    mesh = _mesh(sharding, where)
    kept = ([axis for axis in dim if only is None or axis.name in only] for dim in sharding.dim_axes)
    entries = [axes.of_sharding(dim, mesh) for dim in kept]
    while entries and not entries[-1]:
        entries.pop()
    return call("P", *(axes_text(names) if names else "None" for names in entries))


def _mesh(sharding: TensorSharding, where: Operation) -> Mesh:
    mesh = mesh_of(sharding, where)
    if mesh.is_maximal:
        raise NotImplementedError("shardings on a single device are not printed")
    return mesh


def _constrained(op: Operation, sharding: TensorSharding, scope: Scope) -> Expression:
    """Return a constraint of the operand. Open dimensions without axes are left to the partitioner."""
    mesh = _mesh(sharding, op)
    entries: list[str] = []
    for dim in sharding.dims:
        names = scope.writer.axes.of_sharding(dim.axes, mesh)
        entries.append(axes_text(names) if names else "None" if dim.is_closed else "P.UNCONSTRAINED")
    placed = call("NamedSharding", "mesh", call("P", *entries))
    return call("lax.with_sharding_constraint", scope.of(op.operands[0]), placed)


def _constraint(op: ops.ShardingConstraintOp | ops.ReshardOp, scope: Scope) -> Expression:
    return _constrained(op, op.sharding.data, scope)


def _collective(op: _Collective, scope: Scope) -> Expression:
    return _constrained(op, op.out_sharding.data, scope)


def _identity(op: Operation, scope: Scope) -> Expression:
    return scope.of(op.operands[0])


def _group(op: ops.ShardingGroupOp, scope: Scope) -> None:
    scope.statements.comment(f"{scope.of(op.input)} has the sharding of the group {op.group_id.value.data}")


def _manual(op: ops.ManualComputationOp, scope: Scope) -> Expression:
    """Return a call of `jax.shard_map` over the manual axes."""
    axes, manual = scope.writer.axes, op.manual_axes.data
    name = scope.names.new("on_each_device")
    write_region(op.body, name, scope)
    outs = [spec(each, op, axes, manual) for each in op.out_shardings.data]
    named = [part for axis in manual for part in axes.of_sharding([AxisRef(axis)], common_mesh_of(op))]
    mapped = call(
        "jax.shard_map",
        name,
        mesh="mesh",
        in_specs=tuple_of(spec(each, op, axes, manual) for each in op.in_shardings.data),
        out_specs=outs[0] if len(outs) == 1 else tuple_of(outs),
        axis_names="{" + ", ".join(map(string, named)) + "}",
        check_vma="False",
    )
    target = scope.names.new("mapped")
    scope.write(target, mapped)
    return call(target, *map(scope.of, op.tensors))


def common_mesh_of(op: ops.ManualComputationOp) -> Mesh:
    """Return the mesh of the shardings of a manual computation."""
    return _mesh(next(iter((*op.in_shardings.data, *op.out_shardings.data))), op)


def write_region(region: Region, name: str, scope: Scope) -> None:
    """Write a region as the function `name` of its arguments."""
    inner = scope.inner()
    parameters = [inner.name(argument, "x") for argument in region.block.args]
    inner.write_body(region.block)
    scope.define(name, parameters, inner)


def _named(op: ops.NamedComputationOp, scope: Scope) -> Expression:
    name = scope.names.new(op.computation_name.data)
    write_region(op.body, name, scope)
    return call(name, *map(scope.of, op.inputs))


SHARDINGS: dict[type[Operation], Printer] = {
    collectives.AllGatherOp: _collective,
    collectives.AllReduceOp: _collective,
    collectives.AllSliceOp: _collective,
    collectives.AllToAllOp: _collective,
    collectives.CollectivePermuteOp: _collective,
    collectives.ReduceScatterOp: _collective,
    ops.ConstantOp: SHAPING[stablehlo.ConstantOp],
    ops.DataFlowEdgeOp: _identity,
    ops.ManualComputationOp: _manual,
    ops.NamedComputationOp: _named,
    ops.PropagationBarrierOp: _identity,
    ops.ReshardOp: _constraint,
    ops.ShardingConstraintOp: _constraint,
    ops.ShardingGroupOp: _group,
}
