"""`sdy-resolve-permutation-factors`: halo exchange of rows that operations need from other devices."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from sdy.dialect.shardings import get_sharding
from sdy.ir.walking import operations
from sdy.passes.common.replication_cost import LocalBytes, current_shardings, warn_of_cost
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.emit.op_conversion import device_id_op
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning
from sdy.passes.spmd.emit.resolution import Resolution
from sdy.passes.spmd.local_module import Channels, first_free_channel
from sdy.passes.spmd.ops import partitioning_of
from sdy.passes.spmd.ops.slices import split_slices


@dataclass(frozen=True)
class ResolvePermutationFactorsPass(ModulePass):
    """Exchange the rows that windows, shifts and uneven reshapes need from other shards of a tensor.

    Before::

        sdy.mesh @mesh = <["x"=4]>
        %1 = stablehlo.slice %0 [1:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<12xf32>) -> tensor<8xf32>

    After, shortened, and with `least_communication`: each device has three elements of %0 and needs two, and the last
    two devices receive some of theirs from their left neighbors::

        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x"} (%own: tensor<3xf32>) {
          %2 = stablehlo.slice %own [1:3] : (tensor<3xf32>) -> tensor<2xf32>
          %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[1, 2], [2, 3]]>, ...
          %4 = stablehlo.concatenate %3, %own, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
          %5 = stablehlo.dynamic_slice %4, %place, sizes = [2] : (tensor<5xf32>, tensor<i64>) -> tensor<2xf32>
          sdy.return %5 : tensor<2xf32>
        } : (tensor<12xf32>) -> tensor<8xf32>

    If the exchange would move more bytes than an all-gather of the dimension, the dimension is replicated by reshards
    around the operation, with a warning. It is also replicated if `enable_halo_exchange` is false.

    Neighbors send their full shards, as in Shardy, or with `least_communication` only the needed rows. A device is
    identified by its partition id, or by its replica id if `replica_count` is greater than 1.
    """

    name = "sdy-resolve-permutation-factors"
    enable_halo_exchange: bool = True
    replica_count: int = 1
    partition_count: int = 1
    least_communication: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        resolution = Resolution(
            Symbols(op),
            device_id_op(op, self.replica_count, self.partition_count),
            Channels(first_free_channel(operations(op))),
            planner_of(self.least_communication),
        )
        if self.least_communication:
            split_slices(op)
        inside = [(inner, partitioning_of(inner)) for inner in operations(op)]
        for inner, partitioning in sorted(inside, key=lambda each: not each[1].absorbs_operands):
            may_move = partitioning.exchange is not None or inner.name.startswith("stablehlo.")
            is_split = may_move and any(map(_is_split, inner.operands))
            if (is_split or partitioning.absorbs_operands) and inner.parent is not None:
                self._resolve(inner, partitioning, resolution)

    def _resolve(self, op: Operation, partitioning: OperationPartitioning, resolution: Resolution) -> None:
        exchange = partitioning.exchange if self.enable_halo_exchange else None
        if exchange is not None and exchange(op, resolution):
            return
        before = current_shardings(op)
        if partitioning.replicate(op, resolution) and self.enable_halo_exchange:
            what = "is replicated along the dimensions in which elements change devices"
            warn_of_cost(op, what, LocalBytes.by(op, before), LocalBytes.by(op, current_shardings(op)))


def _is_split(value: SSAValue) -> bool:
    sharding = get_sharding(value)
    return sharding is not None and not sharding.is_fully_replicated
