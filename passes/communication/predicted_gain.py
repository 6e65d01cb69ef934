"""Predicted step times of a partitioned program before and after a change, on given hardware."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sdy.dialect.attributes import HARDWARE
from sdy.dialect.meshes import main_mesh
from sdy.ir.companions import clone
from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepTimes


def planned_hardware(module: ModuleOp, name: str) -> Hardware | None:
    """Return the hardware with a name, by default that of the module's attribute `sdy.hardware`, or None."""
    planned = module.attributes.get(HARDWARE)
    name = name or (planned.data if isinstance(planned, StringAttr) else "")
    return hardware_of(name) if name else None


def seconds_with(module: ModuleOp, change: Callable[[ModuleOp], object], hardware: Hardware) -> float:
    """Return the predicted step time of `module` after a change, which is made to a copy."""
    changed = clone(module)
    change(changed)
    return predicted_seconds(changed, hardware)


def predicted_seconds(local: ModuleOp, hardware: Hardware) -> float:
    """Return the predicted step time of a partitioned module."""
    return StepTimes(local, main_mesh(local), hardware).seconds


@dataclass(frozen=True)
class UnlessSlowerPass(AnalysisPreservingPass):
    """A change after which devices receive less, but which may expose communication that ran beside computation.

    With `hardware`, a preset or a file, or by default the module's attribute `sdy.hardware`, nothing is changed if the
    step then takes longer, as predicted.
    """

    hardware: str = ""

    @abstractmethod
    def change(self, module: ModuleOp) -> None:
        """Change `module` in place."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        hardware = planned_hardware(op, self.hardware)
        if hardware is None or seconds_with(op, self.change, hardware) <= predicted_seconds(op, hardware):
            self.change(op)
