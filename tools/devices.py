"""The devices that a program is run or compiled for: those that there are, or virtual ones of the CPU.

jax is imported only where devices are asked for: a mistake in a program is told without waiting for it.
"""

import os
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
    if count > _MOST_VIRTUAL_DEVICES or (_virtual_devices_are_set() and count > 1):
        import jax

        if count > (here := len(jax.devices())):
            raise _too_few(module, count, f"here are {here}, and at most {_MOST_VIRTUAL_DEVICES} virtual ones are made")


def _too_few(module: ModuleOp, count: int, reason: str) -> DiagnosticError:
    hint = "sdy-opt -sdy-propagation-pipeline -sdy-partition-pipeline prints what each device would run"
    return error(module, f"the program's mesh has {count} devices, but {reason}", hint)


def enough_devices(module: ModuleOp, wanted: int | None = None) -> "list[Device]":
    """As many devices as `wanted`, or as the program needs; virtual ones of the CPU where there are too few others."""
    import jax

    count = wanted or device_count(module)
    if not _virtual_devices_are_set():
        with suppress(RuntimeError):  # jax is running already, in a process that calls this function
            jax.config.update("jax_num_cpu_devices", min(count, _MOST_VIRTUAL_DEVICES))
    devices = jax.devices()
    if len(devices) < count <= _MOST_VIRTUAL_DEVICES:
        devices = jax.devices("cpu")
    if len(devices) < count:
        raise _too_few(module, count, f"here are {len(devices)}")
    return devices[:count]


def _virtual_devices_are_set() -> bool:
    """Whether a person has said how many virtual devices there are."""
    flags = os.environ.get("XLA_FLAGS", "")
    return "JAX_NUM_CPU_DEVICES" in os.environ or "xla_force_host_platform_device_count" in flags
