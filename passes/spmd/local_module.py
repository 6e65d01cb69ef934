"""Modules of one device's program: their marker attribute, collectives and channels."""

from collections.abc import Iterable
from itertools import count

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation

from sdy.stablehlo.attributes.operation_attributes import ChannelHandle, ChannelHandleAttr
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp

_MARK = "sdy.partitioned"
"""Marker attribute of a module whose types are those of one device's shards.

The shardings of its functions still describe the unpartitioned tensors.
"""

_BETWEEN_DEVICES = 1

COLLECTIVES = (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CollectiveBroadcastOp,
    CollectivePermuteOp,
    ReduceScatterOp,
)
"""The collectives without side effects."""


def is_local(module: ModuleOp) -> bool:
    """Return whether `module` is partitioned."""
    return _MARK in module.attributes


def mark_local(module: ModuleOp) -> None:
    """Mark `module` as partitioned."""
    module.attributes[_MARK] = UnitAttr()


class Channels:
    """Generator of the channel ids of a module, unique for each collective."""

    def __init__(self, first: int = 1):
        self._numbers = count(first)

    def next(self) -> ChannelHandleAttr:
        """Return an unused channel handle."""
        return ChannelHandleAttr(ChannelHandle(next(self._numbers), _BETWEEN_DEVICES))


def first_free_channel(operations: Iterable[Operation]) -> int:
    """Return the channel id after the greatest one of `operations`, at least 1."""
    handles = (op.properties.get("channel_handle") for op in operations)
    return 1 + max((handle.data.handle for handle in handles if type(handle) is ChannelHandleAttr), default=0)
