"""The hardware presets that describe the devices of jax, and what follows from them: offloading, options of XLA."""

from collections.abc import Mapping, Sequence

from sdy.passes.jax.compiler_context import CPU_OPTIONS
from sdy.passes.jax.device_mesh import Device
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.host_memory import HOST

PRESETS = {
    "cpu": "cpu-8",
    "NVIDIA A100-SXM4-80GB": "a100",
    "NVIDIA H100 80GB HBM3": "h100",
    "NVIDIA H200": "h200",
    "NVIDIA B200": "b200",
    "TPU v4": "tpu-v4",
    "TPU v5 lite": "tpu-v5e",
    "TPU v5e": "tpu-v5e",
    "TPU v5": "tpu-v5p",
    "TPU v5p": "tpu-v5p",
    "TPU v6 lite": "tpu-v6e",
    "TPU v6e": "tpu-v6e",
    "TPU7x": "tpu-v7",
}
"""Hardware presets, keyed by `jax.Device.device_kind`."""


def offloading_hardware(devices: Sequence[Device]) -> str:
    """Return the preset of `devices` if values can be moved to their hosts while a program runs; empty otherwise.

    XLA for CPUs has host memory, but ignores the operations that move values there. Devices that a program is compiled
    for ahead of time list no memories: they are taken to have that of their preset.
    """
    if not devices or devices[0].platform == "cpu":
        return ""
    preset = PRESETS.get(devices[0].device_kind, "")
    memories = devices[0].addressable_memories()
    has_host_memory = not memories or any(memory.kind == HOST for memory in memories)
    return preset if preset and has_host_memory and hardware_of(preset).host is not None else ""


def backend_of(devices: Sequence[Device]) -> Backend:
    """Return the back end of XLA that compiles for `devices`; for none, that of CPUs."""
    return Backend.ACCELERATOR if devices and devices[0].platform != "cpu" else Backend.CPU


def limited_memory_options(devices: Sequence[Device], limit: int) -> Mapping[str, str]:
    """Return the options with which XLA keeps a rematerialized program within `limit` bytes of a device.

    XLA for GPUs starts asynchronous copies and collectives early, as long as their results fit into the memory of the
    device: an option says the percentage of it that a program may use.
    """
    if not devices:
        return {}
    kind, platform = devices[0].device_kind, devices[0].platform
    if platform == "gpu" and kind in PRESETS:
        percentage = 100 * limit // hardware_of(PRESETS[kind]).memory
        return {"xla_gpu_memory_limit_slop_factor": str(min(max(percentage, 1), 100))}
    return CPU_OPTIONS if platform == "cpu" else {}
