"""Replica groups of collectives."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from sdy.device_groups import device_groups
from sdy.dialect.meshes import enclosing_module, named_meshes
from sdy.interpreter.grid import Grid, Group
from sdy.stablehlo import ChannelHandleAttr
from sdy.stablehlo.attributes.replica_group_meshes import axes_and_mesh
from sdy.stablehlo.attributes.replica_groups import ReplicaGroupMeshAxesAttr
from sdy.stablehlo.checks.process_groups import GloballyGroupedOp, GroupedOp


class _Grouping(NamedTuple):
    """An interpretation of the numbers in an operation's replica groups."""

    groups: Callable[[Grid, Sequence[Sequence[int]]], list[Group]]
    """Converts groups of numbers to groups of devices."""
    everyone: Callable[[Grid], int]
    """Returns the size of the default group of all numbers."""


def _replicas(grid: Grid) -> int:
    return grid.replicas


def _partitions(grid: Grid) -> int:
    return grid.partitions


def _devices(grid: Grid) -> int:
    return grid.replicas * grid.partitions


_CROSS_REPLICA = _Grouping(Grid.cross_replica, _replicas)
_CROSS_PARTITION = _Grouping(Grid.cross_partition, _partitions)
_CROSS_BOTH = _Grouping(Grid.cross_replica_and_partition, _replicas)
_FLATTENED = _Grouping(Grid.flattened, _devices)


def channel_of(op: Operation) -> int:
    """Return the channel id of a collective; 0 if it has none."""
    handle = op.properties.get("channel_handle")
    return handle.data.handle if isinstance(handle, ChannelHandleAttr) else 0


def groups_of(op: Operation, grid: Grid) -> list[Group]:
    """Return the groups of devices of a collective."""
    grouping = _grouping(op)
    return grouping.groups(grid, numbers_of_groups(op) or [list(range(grouping.everyone(grid)))])


def _grouping(op: Operation) -> _Grouping:
    across_partitions = channel_of(op) > 0
    if isinstance(op, GloballyGroupedOp):
        if op.use_global_device_ids is not None:
            return _FLATTENED
        return _CROSS_BOTH if across_partitions else _CROSS_REPLICA
    return _CROSS_PARTITION if across_partitions and isinstance(op, GroupedOp) else _CROSS_REPLICA


def numbers_of_groups(op: Operation) -> list[list[int]]:
    """Return the numbers in each replica group, without the padding of shorter groups.

    Groups along mesh axes consist of device ids, in the order of their positions along these axes.
    """
    groups = op.properties["replica_groups"]
    if isinstance(groups, ReplicaGroupMeshAxesAttr):
        module = enclosing_module(op)
        assert module is not None
        return device_groups(*axes_and_mesh(groups, named_meshes(module)))
    assert isinstance(groups, DenseIntOrFPElementsAttr)
    return [[*group] for group in _listed_groups(cast(DenseIntOrFPElementsAttr[Any], groups))]


@lru_cache(maxsize=2**8)
def _listed_groups(groups: DenseIntOrFPElementsAttr[Any]) -> Sequence[Sequence[int]]:
    """Return the listed groups; memoized, as hundreds of collectives have the same."""
    count, size = groups.get_shape()
    numbers = cast(Sequence[int], groups.get_values() if count * size else ())
    rows = (numbers[row * size : (row + 1) * size] for row in range(count))
    return [group for row in rows if (group := [number for number in row if number != -1])]
