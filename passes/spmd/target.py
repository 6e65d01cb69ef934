"""Target of partitioning: the options of the per-device program, its device ids and its collective channels."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from xdsl.ir import Operation

from sdy.diagnostics import error
from sdy.passes.spmd.planner import Planner, ShardyPlanner
from sdy.stablehlo.attributes.operation_attributes import ChannelHandle, ChannelHandleAttr
from sdy.stablehlo.constants import DeviceIdOp, PartitionIdOp, ReplicaIdOp

_BETWEEN_DEVICES = 1


class Channels:
    """Generator of the channel ids of a module, unique for each collective."""

    def __init__(self, first: int = 1):
        self._numbers = count(first)

    def next(self) -> ChannelHandleAttr:
        """Return an unused channel handle."""
        return ChannelHandleAttr(ChannelHandle(next(self._numbers), _BETWEEN_DEVICES))


@dataclass(frozen=True)
class Target:
    """Options of partitioning, as documented by the passes that have them."""

    device_id: type[DeviceIdOp] = PartitionIdOp
    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    groups_by_axes: bool = False
    allow_replication: bool = True
    planner: Planner = field(default_factory=ShardyPlanner)
    preserve_semantics: bool = True
    channels: Channels = field(default_factory=Channels)


def device_id_op(where: Operation, replica_count: int, partition_count: int) -> type[DeviceIdOp]:
    """Return the operation that computes the id of the running device.

    Raises:
        DiagnosticError: Both counts are greater than 1.
    """
    if replica_count > 1 and partition_count > 1:
        raise error(where, "devices are replicas or partitions: one of replica-count and partition-count must be 1")
    return ReplicaIdOp if replica_count > 1 else PartitionIdOp


def first_free_channel(operations: Iterable[Operation]) -> int:
    """Return the channel id after the greatest one of `operations`, at least 1."""
    handles = (op.properties.get("channel_handle") for op in operations)
    return 1 + max((handle.data.handle for handle in handles if type(handle) is ChannelHandleAttr), default=0)
