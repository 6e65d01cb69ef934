"""The hardware presets that describe the devices of jax, and the devices that can offload values to their hosts."""

from collections.abc import Sequence

from sdy.passes.jax.device_mesh import Device
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

    XLA for CPUs has host memory, but ignores the operations that move values there.
    """
    if not devices or devices[0].platform == "cpu":
        return ""
    preset = PRESETS.get(devices[0].device_kind, "")
    has_host_memory = any(memory.kind == HOST for memory in devices[0].addressable_memories())
    return preset if preset and has_host_memory and hardware_of(preset).host is not None else ""
