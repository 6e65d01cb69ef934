"""The collectives that a partitioned program communicates by, each of which gives its results alone."""

from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp

COLLECTIVES = (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CollectiveBroadcastOp,
    CollectivePermuteOp,
    ReduceScatterOp,
)
