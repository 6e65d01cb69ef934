"""Devices that a program runs on or is compiled for: real ones, or virtual CPU devices.

JAX is imported only when devices are needed, so that errors in a program are reported without waiting for the import.
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
"""Maximum number of virtual CPU devices. XLA fails to create some thousands of them, after a long time."""


def check_enough(module: ModuleOp, wanted: int | None = None) -> None:
    """Raise DiagnosticError if the mesh of `module` needs more devices than `wanted` or than are available."""
    count = max((mesh.size for mesh in named_meshes(module).values()), default=1)
    if wanted is not None and wanted < count:
        raise _too_few(module, count, f"--devices is {wanted}")
    if count > _MOST_VIRTUAL_DEVICES and count > (available := len(_devices(module))):
        limit = f"{available} are available, and at most {_MOST_VIRTUAL_DEVICES} virtual CPU devices are supported"
        raise _too_few(module, count, limit)


def _too_few(module: ModuleOp, count: int, reason: str) -> DiagnosticError:
    hint = "sdy-opt -sdy-propagation-pipeline -sdy-partition-pipeline prints what each device would run"
    return error(module, f"the program's mesh has {count} devices, but {reason}", hint)


def enough_devices(module: ModuleOp, wanted: int | None = None) -> "list[Device]":
    """Return `wanted` devices, or as many as the program needs; virtual CPU devices if there are too few others.

    The number of virtual devices is at least that of XLA_FLAGS and JAX_NUM_CPU_DEVICES.

    Raises:
        DiagnosticError: JAX is already initialized with too few devices, or may not use the CPU.
    """
    import jax

    count = wanted or device_count(module)
    with suppress(RuntimeError):  # JAX is already initialized by the caller
        jax.config.update("jax_num_cpu_devices", min(max(count, _requested_virtual_devices()), _MOST_VIRTUAL_DEVICES))
    devices = _devices(module)
    if len(devices) < count <= _MOST_VIRTUAL_DEVICES:
        devices = _devices(module, "cpu")
    if len(devices) < count:
        reason = f"JAX is already initialized with {len(devices)}: set JAX_NUM_CPU_DEVICES={count} before it starts"
        raise _too_few(module, count, reason)
    return devices[:count]


def _devices(module: ModuleOp, platform: str | None = None) -> "list[Device]":
    import jax

    try:
        return jax.devices(platform)
    except (RuntimeError, AssertionError) as problem:  # the latter where no platform has any
        platforms = os.environ.get("JAX_PLATFORMS", "")
        raise error(module, f"jax finds no devices with JAX_PLATFORMS={platforms!r}: {problem}") from problem


def _requested_virtual_devices() -> int:
    """Return the number of virtual devices that the environment requests, or 0."""
    flag = re.search(r"xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return max(int(os.environ.get("JAX_NUM_CPU_DEVICES", "0")), int(flag[1]) if flag else 0)
