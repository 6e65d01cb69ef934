"""`sdy-auto-partition`: automatic choice of argument shardings, as a pass."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.auto.auto import auto


@dataclass(frozen=True)
class AutoPartitionPass(AnalysisPreservingPass):
    """Choose a sharding for each argument of the main function that has none, as `sdy.auto` does.

    It runs before propagation, which shards the remaining tensors. Before::

        sdy.mesh @mesh = <["data"=8]>
        func.func @main(%x: tensor<65536x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<65536x4096xf32>

    After::

        func.func @main(%x: tensor<65536x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                        %w: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
          -> tensor<65536x4096xf32>

    `hardware` is a preset or a hardware file; `memory` the size that a device may use, such as `80G`, by default all
    that the hardware has; `time_limit` the maximum duration of the search in seconds, by default until it converges. It
    is an error if no layout fits into memory.
    """

    name = "sdy-auto-partition"
    hardware: str = "h100-8"
    memory: str = ""
    time_limit: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            plan = auto(op, hardware=self.hardware, memory=self.memory or None, time_limit=self.time_limit)
        except ValueError as problem:
            raise error(op, str(problem)) from None
        if not plan.fits:
            needed = f"the best one needs {plan.cost.memory:,} bytes per device"
            raise error(op, f"found no layout that fits into {plan.memory:,} bytes: {needed}")
