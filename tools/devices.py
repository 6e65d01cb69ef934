"""The devices that a program is run or compiled for: those that there are, or virtual ones of the CPU.

jax is imported only where devices are asked for: a mistake in a program is told without waiting for it.
"""

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import DiagnosticError, error
from sdy.dialect.meshes import device_count, named_meshes

if TYPE_CHECKING:
    from sdy.passes.jax.device_mesh import Device

_MOST_VIRTUAL_DEVICES = 1024
"""The number of virtual CPU devices that XLA is sure to make; it refuses some thousands, after a long time."""


def check_enough(module: ModuleOp, wanted: int | None = None) -> None:
    """Raise DiagnosticError, before there is much work, where `module` is for more devices than there can be."""
    count = max((mesh.size for mesh in named_meshes(module).values()), default=1)
    if wanted is not None and wanted < count:
        raise _too_few(module, count, f"--devices={wanted} gives it fewer")
    if count > _MOST_VIRTUAL_DEVICES and count > (here := len(_devices(module))):
        raise _too_few(module, count, f"here are {here}, and at most {_MOST_VIRTUAL_DEVICES} virtual ones are made")


def _too_few(module: ModuleOp, count: int, reason: str) -> DiagnosticError:
    hint = "sdy-opt -sdy-propagation-pipeline -sdy-partition-pipeline prints what each device would run"
    return error(module, f"the program's mesh has {count} devices, but {reason}", hint)


def enough_devices(module: ModuleOp, wanted: int | None = None) -> "list[Device]":
    """Return as many devices as `wanted`, or as the program needs; virtual CPU devices where there are too few others.

    Where XLA_FLAGS or JAX_NUM_CPU_DEVICES asks for fewer virtual devices, the program still gets what it needs. Raises
    DiagnosticError where jax runs already and has too few, or may not use the CPU.
    """
    import jax

    count = wanted or device_count(module)
    with suppress(RuntimeError):  # jax runs already, in a process that calls this function
        jax.config.update("jax_num_cpu_devices", min(max(count, _virtual_devices_asked_for()), _MOST_VIRTUAL_DEVICES))
    devices = _devices(module)
    if len(devices) < count <= _MOST_VIRTUAL_DEVICES:
        devices = _devices(module, "cpu")
    if len(devices) < count:
        reason = f"jax runs already and has {len(devices)}: set JAX_NUM_CPU_DEVICES={count} before it starts"
        raise _too_few(module, count, reason)
    return devices[:count]


def _devices(module: ModuleOp, platform: str | None = None) -> "list[Device]":
    import jax

    try:
        return jax.devices(platform)
    except (RuntimeError, AssertionError) as problem:  # the latter where no platform has any
        platforms = os.environ.get("JAX_PLATFORMS", "")
        raise error(module, f"jax finds no devices with JAX_PLATFORMS={platforms!r}: {problem}") from problem


def _virtual_devices_asked_for() -> int:
    """Return how many virtual devices the environment asks for, 0 where it does not say."""
    asked = re.search(r"xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return max(int(os.environ.get("JAX_NUM_CPU_DEVICES", "0")), int(asked[1]) if asked else 0)
