"""`sdy-resolve-permutation-factors`: what an operation needs of other devices' parts is exchanged, or made whole."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from sdy.dialect.shardings import get_sharding
from sdy.ir.walking import operations
from sdy.passes.common.computed_whole import Held, shardings_around, warn_of_whole
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.halo.joining import is_no_shift, resolve_concatenation, split_otherwise
from sdy.passes.spmd.halo.replication import replicate_factors, replicate_windows, reshard_around
from sdy.passes.spmd.halo.reshaping import resolve_reshape, whole_where_uneven
from sdy.passes.spmd.halo.resizing import dims_that_stay, resolve_pad, resolve_slice
from sdy.passes.spmd.halo.resolution import Resolution, Resolve
from sdy.passes.spmd.halo.reversing import resolve_reverse
from sdy.passes.spmd.halo.selecting import resolve_select_and_scatter
from sdy.passes.spmd.halo.windows import resolve_convolution, resolve_reduce_window
from sdy.passes.spmd.target import Channels, device_id_op, first_free_channel
from sdy.rules import sharding_rule
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduce_window import ReduceWindowOp
from sdy.stablehlo.select_and_scatter import SelectAndScatterOp
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp, ReverseOp
from sdy.stablehlo.slicing import SliceOp

_TABLE: dict[type[Operation], Resolve] = {
    ConvolutionOp: resolve_convolution,
    ConcatenateOp: resolve_concatenation,
    PadOp: resolve_pad,
    ReduceWindowOp: resolve_reduce_window,
    ReshapeOp: resolve_reshape,
    ReverseOp: resolve_reverse,
    SelectAndScatterOp: resolve_select_and_scatter,
    SliceOp: resolve_slice,
}


@dataclass(frozen=True)
class ResolvePermutationFactorsPass(ModulePass):
    """Let devices exchange what windows, pads, slices, reverses and uneven reshapes need of other parts of a tensor.

    Before::

        sdy.mesh @mesh = <["x"=4]>
        %1 = stablehlo.slice %0 [1:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
            : (tensor<12xf32>) -> tensor<8xf32>

    After, shortened, and with `least_communication`: each device has three elements of %0 and needs two, for some of
    which the last two devices ask their neighbour::

        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x"} (%own: tensor<3xf32>) {
          %2 = stablehlo.slice %own [1:3] : (tensor<3xf32>) -> tensor<2xf32>
          %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[1, 2], [2, 3]]>, ...
          %4 = stablehlo.concatenate %3, %own, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
          %5 = stablehlo.dynamic_slice %4, %place, sizes = [2] : (tensor<5xf32>, tensor<i64>) -> tensor<2xf32>
          sdy.return %5 : tensor<2xf32>
        } : (tensor<12xf32>) -> tensor<8xf32>

    Where that would take more communication than to make the dimension whole, or `enable_halo_exchange` is false, the
    dimension is made whole, by reshards around the operation; the former with a warning.

    Neighbours send all they have, as in Shardy, or with `least_communication` only what someone needs. A device knows
    its place by its partition id, or by its replica id where `replica_count` is more than one.
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
            self.least_communication,
        )
        # Slices that are put together again are resolved with what puts them together.
        for inner in sorted(operations(op), key=lambda each: not isinstance(each, ConcatenateOp)):
            is_split = inner.name.startswith("stablehlo.") and any(map(_is_split, inner.operands))
            if (is_split or isinstance(inner, ConcatenateOp)) and inner.parent is not None:
                self._resolve(inner, resolution)

    def _resolve(self, op: Operation, resolution: Resolution) -> None:
        resolve = _TABLE.get(type(op)) if self.enable_halo_exchange else None
        if resolve is not None and resolve(op, resolution):
            return
        if self.least_communication and isinstance(op, ConcatenateOp) and is_no_shift(op):
            reshard_around(op, split_otherwise(op))
            return
        before = shardings_around(op)
        if _make_whole(op, self.least_communication) and self.enable_halo_exchange:
            what = "is computed whole along the dimensions in which elements change devices"
            warn_of_whole(op, what, Held.by(op, before), Held.by(op, shardings_around(op)))


def _is_split(value: SSAValue) -> bool:
    sharding = get_sharding(value)
    return sharding is not None and not sharding.is_fully_replicated


def _make_whole(op: Operation, windows_too: bool) -> bool:
    """Let `op` run without axes along which it moves elements between devices; whether there are any.

    With `windows_too`, they may be those that split the windows of a convolution.
    """
    if isinstance(op, ReshapeOp):
        return reshard_around(op, whole_where_uneven(op))
    rule = sharding_rule(op)
    if rule is None or rule.is_custom:
        return False
    staying = dims_that_stay(op) if isinstance(op, PadOp | SliceOp) else ()
    factors = set(rule.permutation) - {factor for dim in staying for factor in rule.operands[0][dim]}
    windows = windows_too and isinstance(op, ConvolutionOp) and replicate_windows(op, rule)
    return (bool(factors) and replicate_factors(op, rule, factors)) or windows
