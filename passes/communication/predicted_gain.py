"""Predicted step times of a partitioned program before and after a change, on given hardware."""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp, StringAttr

from sdy.dialect.attributes import HARDWARE
from sdy.dialect.meshes import main_mesh
from sdy.ir.companions import clone
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepTimes


def planned_hardware(module: ModuleOp, name: str) -> Hardware | None:
    """Return the hardware with a name, by default that of the module's attribute `sdy.hardware`, or None."""
    planned = module.attributes.get(HARDWARE)
    name = name or (planned.data if isinstance(planned, StringAttr) else "")
    return hardware_of(name) if name else None


def is_slower(module: ModuleOp, change: Callable[[ModuleOp], object], name: str) -> bool:
    """Return whether the step takes longer after a change on the planned hardware; False without hardware."""
    hardware = planned_hardware(module, name)
    return hardware is not None and seconds_with(module, change, hardware) > predicted_seconds(module, hardware)


def seconds_with(module: ModuleOp, change: Callable[[ModuleOp], object], hardware: Hardware) -> float:
    """Return the predicted step time of `module` after a change, which is made to a copy."""
    changed = clone(module)
    change(changed)
    return predicted_seconds(changed, hardware)


def predicted_seconds(local: ModuleOp, hardware: Hardware) -> float:
    """Return the predicted step time of a partitioned module."""
    return StepTimes(local, main_mesh(local), hardware).seconds
