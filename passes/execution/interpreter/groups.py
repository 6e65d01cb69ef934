"""Which devices take part in a collective together."""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from sdy.dialect.meshes import enclosing_module, named_meshes
from sdy.passes.common.replica_group_meshes import mesh_or_name
from sdy.passes.execution.interpreter.grid import Grid, Group
from sdy.passes.partitioning.device_groups import device_groups
from sdy.stablehlo.attributes import ChannelHandleAttr
from sdy.stablehlo.process_groups import GloballyGroupedOp, GroupedOp
from sdy.stablehlo.replica_groups import ReplicaGroupMeshAxesAttr

_Grouping = Callable[[Grid, Sequence[Sequence[int]]], list[Group]]


def channel_of(op: Operation) -> int:
    """The number of the channel that a collective uses; 0 where it has none."""
    handle = op.properties.get("channel_handle")
    return handle.data.handle if isinstance(handle, ChannelHandleAttr) else 0


def groups_of(op: Operation, grid: Grid) -> list[Group]:
    """The groups of devices within which `op`, a collective, works."""
    grouping = _grouping(op)
    return grouping(grid, _numbers(op) or _everyone(grid, grouping))


def _grouping(op: Operation) -> _Grouping:
    """How the numbers in the operation's groups are meant."""
    across_partitions = channel_of(op) > 0
    if isinstance(op, GloballyGroupedOp):
        if op.use_global_device_ids is not None:
            return Grid.flattened
        return Grid.cross_replica_and_partition if across_partitions else Grid.cross_replica
    return Grid.cross_partition if across_partitions and isinstance(op, GroupedOp) else Grid.cross_replica


def _everyone(grid: Grid, grouping: _Grouping) -> list[list[int]]:
    """The one group that is meant where none is given."""
    counts = {Grid.cross_partition: grid.partitions, Grid.flattened: grid.replicas * grid.partitions}
    return [list(range(counts.get(grouping, grid.replicas)))]


def _numbers(op: Operation) -> list[list[int]]:
    """The numbers in each group, without those that only fill up a shorter one.

    Groups along the axes of a mesh are of device ids, in the order of their places along these axes.
    """
    groups = op.properties["replica_groups"]
    if isinstance(groups, ReplicaGroupMeshAxesAttr):
        mesh = mesh_or_name(groups.data.mesh)
        if isinstance(mesh, str):
            module = enclosing_module(op)
            assert module is not None
            mesh = named_meshes(module)[mesh]
        return device_groups([axis.data for axis in groups.data.axes], mesh)
    assert isinstance(groups, DenseIntOrFPElementsAttr)
    count, size = groups.get_shape()
    numbers = groups.get_values() if count * size else ()
    rows = (numbers[row * size : (row + 1) * size] for row in range(count))
    return [group for row in rows if (group := [int(number) for number in row if number != -1])]
