"""The StableHLO collectives of a partitioned program that have no side effects."""

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
