"""What the program of one device is made for: how a device knows which it is, and the form of its collectives."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from xdsl.ir import Operation

from sdy.diagnostics import error
from sdy.stablehlo.attributes.operation_attributes import ChannelHandle, ChannelHandleAttr
from sdy.stablehlo.constants import DeviceIdOp, PartitionIdOp, ReplicaIdOp

_BETWEEN_DEVICES = 1


class Channels:
    """Numbers for collectives, so that each is told apart from all others in the module."""

    def __init__(self, first: int = 1):
        self._numbers = count(first)

    def next(self) -> ChannelHandleAttr:
        """A number that no other collective has."""
        return ChannelHandleAttr(ChannelHandle(next(self._numbers), _BETWEEN_DEVICES))


@dataclass(frozen=True)
class Target:
    """The choices that are open where a module is made local; the options of the passes say what they are about."""

    device_id: type[DeviceIdOp] = PartitionIdOp
    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    groups_by_axes: bool = False
    allow_replication: bool = True
    least_communication: bool = False
    preserve_semantics: bool = True
    channels: Channels = field(default_factory=Channels)


def device_id_op(where: Operation, replica_count: int, partition_count: int) -> type[DeviceIdOp]:
    """The operation that tells a device which one it is. Raises DiagnosticError for several replicas of partitions."""
    if replica_count > 1 and partition_count > 1:
        raise error(where, "devices are replicas or partitions: one of replica-count and partition-count must be 1")
    return ReplicaIdOp if replica_count > 1 else PartitionIdOp


def first_free_channel(operations: Iterable[Operation]) -> int:
    """The number after the greatest channel of a collective that is there already, at least 1."""
    handles = (op.properties.get("channel_handle") for op in operations)
    return 1 + max((handle.data.handle for handle in handles if type(handle) is ChannelHandleAttr), default=0)
