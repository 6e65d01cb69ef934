"""`sdy-rematerialize`: recompute or offload values of a per-device program, so that it needs less memory."""

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sdy.diagnostics import MemoryLimitWarning, warn
from sdy.dialect.attributes import HARDWARE, MEMORY_LIMIT
from sdy.formatting import format_bytes
from sdy.ir.companions import companion
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.memory_limit import limit_of
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.remat.program import rematerialize
from sdy.passes.spmd.remat.recomputed import Recomputed

_DEFAULT = "h100"
"""The hardware for the times of operations, if none is named."""


@dataclass(frozen=True)
class RematerializePass(AnalysisPreservingPass):
    """Recompute values that would be kept in memory over the peak, until the predicted memory is at most `memory`.

    Before, where `%1` is in memory until the backward pass::

        %0 = stablehlo.dot_general %x, %w, ...
        %1 = stablehlo.tanh %0
        ...
        %8 = stablehlo.multiply %7, %1

    After, where `%x` is in memory anyway::

        %0 = stablehlo.dot_general %x, %w, ...
        %1 = stablehlo.tanh %0
        ...
        %8:3 = stablehlo.optimization_barrier %7, %x, %w {sdy.orders}
        %9 = stablehlo.dot_general %8#1, %8#2, ... {sdy.recomputes}
        %10 = stablehlo.tanh %9 {sdy.recomputes}
        %11 = stablehlo.multiply %8#0, %10

    A program that fits is left alone. In other programs, barriers first make XLA run the operations in about the order
    of the module, in which gradients of parameters are computed next to those of activations, and which often needs
    less memory alone. Then those values are recomputed that free the most bytes at the peak for each second;
    communication counts. Operations with side effects, custom calls, `stablehlo.rng` and results are not recomputed.

    With `hardware`, a preset or a file, times are those of this hardware, and if it has a link to the host, a value is
    moved to host memory instead where that costs less::

        %1 = stablehlo.tanh %0
        %2 = stablehlo.custom_call @annotate_device_placement(%1) {... _xla_buffer_placement = "pinned_host" ...}
        ...
        %8 = stablehlo.custom_call @annotate_device_placement(%2) {... _xla_buffer_placement = "device" ...}
        %9 = stablehlo.multiply %7, %8

    Transfers run beside computation, and cost the time that exceeds it, and the traffic of the device's memory. XLA for
    CPUs ignores them: without `hardware`, nothing is offloaded, and times are those of an H100.

    A loop that stacks values for a later one, as the gradient of a scan over layers does, no longer writes those that
    follow from other values; the later loop computes them again. Or else it stacks them in host memory. Other values
    inside of loops and branches are kept.

    XLA removes barriers early on CPUs: there, the program has to be compiled with the options
    `xla_disable_hlo_passes=cse_barrier_expander` and `xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED`.

    The pass warns if the program needs more than `memory`, a size such as `2G`. Without it, the module's attributes
    `sdy.memory_limit` and `sdy.hardware` are used, which `sdy-auto-partition` sets; without either, the pass does
    nothing.
    """

    name = "sdy-rematerialize"
    memory: str = ""
    hardware: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit, hardware = limit_of(op, self.memory, self.name), self._hardware(op)
        op.attributes.pop(MEMORY_LIMIT, None)
        op.attributes.pop(HARDWARE, None)
        if limit is None:
            return
        before = peak_bytes(op, Backend.ACCELERATOR)
        result = rematerialize(op, limit, hardware)
        recomputed = companion(op, Recomputed)
        recomputed.values, recomputed.offloaded, recomputed.saved = result.values, result.offloaded, result.saved
        recomputed.memory, recomputed.saved_bytes = result.memory, before - result.memory
        if result.memory > limit:
            needed, excess, given = map(format_bytes, (result.memory, result.memory - limit, limit))
            warn(
                main_function(op),
                f"the program needs {needed} of memory with {recomputed.num_values} values recomputed: {excess} "
                f"more than {given}; split its arguments along more axes, or raise the limit",
                category=MemoryLimitWarning,
            )

    def _hardware(self, module: ModuleOp) -> Hardware:
        """Return the hardware; the default one has no link to the host."""
        planned = module.attributes.get(HARDWARE)
        if not self.hardware and isinstance(planned, StringAttr):
            return hardware_of(planned.data)
        return hardware_of(self.hardware) if self.hardware else replace(hardware_of(_DEFAULT), host=None)
