"""`sdy-window-products`: products in parts, whose communication runs beside them."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.ir.companions import clone
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import operations
from sdy.passes.communication.predicted_gain import planned_hardware, predicted_seconds, seconds_with
from sdy.passes.communication.windowed_products import windowed_products
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.local_module import Channels, first_free_channel

_GAIN = 0.005
"""The least part of the step time by which windowing must shorten it."""

_MEMORY = 1.02
"""The most memory of the windowed program, as a multiple of the other's."""


@dataclass(frozen=True)
class WindowProductsPass(AnalysisPreservingPass):
    """Compute products in parts where that hides an all-gather before, or a reduce-scatter after them.

    Devices send their shards around a ring, and multiply each one while the next one arrives. Before, on four devices::

        %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, ...}> : (tensor<2x8xf32>) -> tensor<8x8xf32>
        %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]

    After::

        %0 = "stablehlo.collective_permute"(%x) ...
        %1 = "stablehlo.collective_permute"(%0) ...
        %2 = "stablehlo.collective_permute"(%1) ...
        %3 = stablehlo.dot_general %x, %w, ...
        %4 = stablehlo.dynamic_update_slice %zeros, %3, %start, %c
        %5 = stablehlo.dot_general %0, %w, ...
        ...

    Before a reduce-scatter, partial sums of its parts move around the ring. Devices receive as many bytes. XLA's own
    partitioner has this transformation as "windowed einsum", which programs that are partitioned already do not get.

    Collectives of equal types, with equal products, are windowed together, where the step then takes less time as
    predicted for `hardware`, a preset or a file; by default, it is the module's attribute `sdy.hardware`. Without
    hardware, the pass does nothing. Sums over a gathered dimension are accumulated in at least 32 bits. If operations
    other than products read the gathered value, too, it is put together from its shards. Unchanged are groups of more
    than 16 devices.
    """

    name = "sdy-window-products"
    hardware: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        hardware = planned_hardware(op, self.hardware)
        kinds = () if hardware is None else dict.fromkeys(each.kind for each in windowed_products(op))
        if hardware is None or not kinds:
            return
        chosen: list[Hashable] = []
        best = predicted_seconds(op, hardware)
        for kind in kinds:
            seconds = seconds_with(op, partial(window, kinds=[*chosen, kind]), hardware)
            if seconds < best * (1 - _GAIN):
                chosen.append(kind)
                best = seconds
        backend = hardware.backend
        if chosen and peak_bytes(window(clone(op), chosen), backend) <= _MEMORY * peak_bytes(op, backend):
            window(op, chosen)


def window(module: ModuleOp, kinds: Collection[Hashable]) -> ModuleOp:
    """Window the collectives of some kinds in place, and return the module; of two with a common product, the first."""
    channels = Channels(first_free_channel(operations(module)))
    for each in [each for each in windowed_products(module) if each.kind in kinds]:
        if all(product.parent is not None for product in each.products):
            each.expand(channels)
    return module
