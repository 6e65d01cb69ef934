"""`sdy-auto-partition`: choose how arguments are split."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.auto.auto import auto


@dataclass(frozen=True)
class AutoPartitionPass(AnalysisPreservingPass):
    """Choose a sharding for each argument of the main function that has none, as `sdy.auto` does.

    It comes before propagation, which decides the rest. Before::

        sdy.mesh @mesh = <["data"=8]>
        func.func @main(%x: tensor<65536x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<65536x4096xf32>

    After::

        func.func @main(%x: tensor<65536x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                        %w: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
          -> tensor<65536x4096xf32>

    `hardware` is a preset or a hardware file, `memory` the size that a device may use, as `80G`, by default what the
    hardware has, `time_limit` the seconds that the search may take. That nothing fits is an error.
    """

    name = "sdy-auto-partition"
    hardware: str = "h100-8"
    memory: str = ""
    time_limit: int = 60

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            plan = auto(op, hardware=self.hardware, memory=self.memory or None, time_limit=self.time_limit)
        except ValueError as problem:
            raise error(op, str(problem)) from None
        if not plan.fits:
            needed = f"the best layout needs {plan.cost.memory:,} bytes on each device"
            raise error(op, f"no layout was found that fits into {plan.memory:,} bytes: {needed}")
