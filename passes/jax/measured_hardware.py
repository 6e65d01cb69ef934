"""Hardware files from measurements: times of matrix products, copies and collectives on jax's devices.

All devices run at the same time, as in a step of a program, so that shared resources are measured as shared.
"""

import os
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sdy.passes.jax.device_mesh import Device

_TYPES = {"f32": "float32", "bf16": "bfloat16"}
_AXIS = "devices"
_TURNS = 5


def measured_hardware(size: int = 1024) -> str:
    """Measure jax's devices with matrices of `size` x `size` on each, and return the text of a hardware file.

    A single device has no link; its bandwidth is that of memory.
    """
    devices = jax.devices()
    mesh = Mesh(devices, (_AXIS,))
    sharded = NamedSharding(mesh, PartitionSpec(_AXIS))
    shape = (len(devices), size, size)

    def matrices(dtype: str) -> jax.Array:
        return jax.device_put(jnp.ones(shape, dtype), sharded)

    product = jax.jit(jnp.matmul)
    peak = {name: 2 * size**3 / _seconds(partial(product, x := matrices(dtype), x)) for name, dtype in _TYPES.items()}
    values = matrices("float32")
    part = 4 * size * size
    memory_bandwidth = 2 * part / _seconds(partial(jax.jit(jnp.negative), values))
    gather = jax.jit(lambda x: x + 0, out_shardings=NamedSharding(mesh, PartitionSpec()))
    bandwidth, latency = memory_bandwidth, 1e-6
    if len(devices) > 1:
        short = _seconds(partial(gather, jax.device_put(jnp.ones(len(devices)), sharded)))
        long = _seconds(partial(gather, values))
        latency = short / (len(devices) - 1).bit_length()
        bandwidth = part * (len(devices) - 1) / max(long - short, long / 2)
    return "\n".join(
        [
            f"# Measured on {len(devices)} devices with matrices of {size} x {size}.",
            f'name = "{len(devices)} x {devices[0].device_kind}"',
            f"memory = {_memory(devices[0]) // (len(devices) if devices[0].platform == 'cpu' else 1)}",
            f"memory_bandwidth = {memory_bandwidth:.3g}",
            "",
            "[peak]",
            *(f"{name} = {value:.3g}" for name, value in peak.items()),
            "",
            "[[links]]",
            f"devices = {len(devices)}",
            f"bandwidth = {bandwidth:.3g}",
            f"latency = {latency:.3g}",
            "",
        ]
    )


def _seconds(run: Callable[[], jax.Array]) -> float:
    """Return the minimal time of `_TURNS` runs in seconds, after a run that compiles."""
    run().block_until_ready()
    times: list[float] = []
    for _ in range(_TURNS):
        begin = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - begin)
    return min(times)


def _memory(device: Device) -> int:
    """Return the memory of a device in bytes; of the host on CPUs."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
