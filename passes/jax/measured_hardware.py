"""Hardware files from measurements: times of matrix products, copies and collectives on jax's devices.

All devices run at the same time, as in a step of a program, so that shared resources are measured as shared. Products
and copies have a line, a time for no work and a rate, that is fitted to every other measured point; the file says how
far the points in between are from it. Collectives have a curve through their measured times. The time of a program of
one small operation is that in which the host starts it; it is subtracted from the others. Transfers between an
accelerator and its host have a line, too.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.measured_collectives import collective_curves, left_out, usual_seconds
from sdy.passes.spmd.costs.hardware import PRECISIONS, Curve
from sdy.passes.spmd.costs.host_memory import DEVICE, HOST

_TYPES = {"f32": "float32", "bf16": "bfloat16"}
_AXIS = "devices"
_FEWEST_BYTES, _MOST_BYTES = 4 * 2**10, 64 * 2**20
_SMALLEST, _LARGEST = 32, 1024
"""The sizes of the smallest and of the largest measured product."""

_FASTER = 8
"""The sizes of the largest product and of the largest copy on an accelerator, as a multiple of those on a CPU."""

_MOST_OUT_OF_CACHE, _MOST_OPERANDS = 32 * 2**20, 64
"""The most bytes, and the most number, of the operands that take turns: those of a program are seldom in a cache."""


class Line(NamedTuple):
    """A time in seconds of `start` and, for each unit of work, the inverse of `rate`."""

    start: float
    rate: float
    error: float
    """The mean relative error on the points that it is not fitted to."""


def fitted_line(work: Sequence[float], seconds: Sequence[float]) -> Line:
    """Fit a line to every other point, the first and the last included, by least squares of relative errors."""
    amounts, times = np.array(work, float), np.array(seconds, float)
    is_fitted = (np.arange(len(times))[::-1] % 2 == 0) | (np.arange(len(times)) == 0)
    columns = np.stack([1 / times, amounts / times], 1)[is_fitted]
    (start, slope), *_ = np.linalg.lstsq(columns, np.ones(len(columns)), rcond=None)
    if start < 0 or slope <= 0:  # noise: the largest point has the rate
        start, slope = 0.0, times[-1] / amounts[-1]
    errors = np.abs((start + slope * amounts) / times - 1)[~is_fitted]
    return Line(float(start), float(1 / slope), float(errors.mean()) if errors.size else 0.0)


def host_line(device: Device, sizes: Sequence[int]) -> Line:
    """Measure the slower direction of transfers of each of `sizes` in bytes between a device and its host."""
    here, there = (SingleDeviceSharding(device, memory_kind=kind) for kind in (DEVICE, HOST))

    def transfers(start: Sharding, end: Sharding) -> Line:
        values = [jax.device_put(jnp.ones(each // 4, "float32"), start) for each in sizes]
        return fitted_line(sizes, [usual_seconds(partial(jax.device_put, x, end)) for x in values])

    return min(transfers(here, there), transfers(there, here), key=lambda line: line.rate)


def measured_hardware(size: int = 0, most_bytes: int = 0) -> str:
    """Measure jax's devices and return the text of a hardware file.

    Args:
        size: The rows and columns of the largest matrix product on each device; by default 1,024, and more on
            accelerators.
        most_bytes: The bytes of the largest copy, and of the largest collective's result; by default 64 MiB, and more
            on accelerators.

    A single device has no link; its bandwidth is that of memory.
    """
    devices = jax.devices()
    factor = 1 if devices[0].platform == "cpu" else _FASTER
    size, most_bytes = size or factor * _LARGEST, most_bytes or factor * _MOST_BYTES
    mesh = Mesh(devices, (_AXIS,))
    sharded = NamedSharding(mesh, PartitionSpec(_AXIS))
    sizes = [_SMALLEST << place for place in range((size // _SMALLEST).bit_length())]

    def on_each(shape: tuple[int, ...], dtype: str) -> jax.Array:
        return jax.device_put(jnp.ones((len(devices), *shape), dtype), sharded)

    def product(dtype: str, precision: str) -> Line:
        matmul: Callable[..., jax.Array] = jnp.matmul
        multiply = jax.jit(partial(matmul, precision=precision))

        def seconds(rows: int) -> float:
            shape = rows, rows
            first = on_each(shape, dtype)
            others = min(_MOST_OUT_OF_CACHE // first.nbytes, _MOST_OPERANDS)
            operands = cycle([first, *(on_each(shape, dtype) for _ in range(others))])
            return usual_seconds(lambda: multiply(next(operands), next(operands)))

        return fitted_line([2 * rows**3 for rows in sizes], [*map(seconds, sizes)])

    products = {
        f"{name}.{precision}": product(dtype, precision) for name, dtype in _TYPES.items() for precision in PRECISIONS
    }
    amounts = [_FEWEST_BYTES << place for place in range((most_bytes // _FEWEST_BYTES).bit_length())]
    launch = usual_seconds(partial(jax.jit(jnp.negative), on_each((1,), "float32")))
    values = [on_each((each // 4,), "float32") for each in amounts]
    negative = [usual_seconds(partial(jax.jit(jnp.negative), x)) for x in values]
    copy = fitted_line([2 * each for each in amounts], negative)
    curves = collective_curves(amounts[::2], launch)
    gather = curves.get(("all_gather", len(devices)))
    link = fitted_line(gather.bytes, gather.seconds) if gather else Line(1e-6, copy.rate, 0.0)
    device = jax.local_devices()[0]
    has_host = device.platform != "cpu" and any(memory.kind == HOST for memory in device.addressable_memories())
    host = host_line(device, amounts) if has_host else None
    lines = {**products, "memory": copy, "links": link, **({"host": host} if host else {})}
    overhead = min(line.start for line in products.values()) - launch
    errors = {name: line.error for name, line in lines.items()} | {
        f"{kind}.{group}": left_out(curve) for (kind, group), curve in curves.items()
    }
    return "\n".join(
        [
            f"# Measured on {len(devices)} devices with products of {_SMALLEST} to {size} rows and columns, and",
            f"# copies and collectives of {_FEWEST_BYTES} to {most_bytes} bytes. Mean errors on points that no line is",
            "# fitted to, and of curves that are drawn without a point:",
            *(f"#   {name:20} {error:.0%}" for name, error in errors.items()),
            f'name = "{len(devices)} x {devices[0].device_kind}"',
            f"memory = {_memory(jax.local_devices()[0]) // (len(devices) if devices[0].platform == 'cpu' else 1)}",
            f"memory_bandwidth = {copy.rate:.3g}",
            f"launch = {launch:.3g}",
            *(["asynchronous = []"] if devices[0].platform == "cpu" else []),
            "",
            "[peak]",
            *(f"{name} = {{ {', '.join(_rate(name, each, products) for each in PRECISIONS)} }}" for name in _TYPES),
            "",
            "[reached]",
            f"overhead = {max(overhead, 1e-9):.3g}",
            "",
            "[[links]]",
            f"devices = {len(devices)}",
            f"bandwidth = {link.rate:.3g}",
            f"latency = {max(link.start / max(len(devices) - 1, 1), 1e-9):.3g}",
            "",
            *(_host_table(host, devices[0].platform) if host else []),
            *(line for (kind, group), curve in curves.items() for line in _table(f"curves.{kind}.{group}", curve)),
        ]
    )


def _table(name: str, curve: Curve) -> Sequence[str]:
    """Return the lines of a table of a hardware file."""
    sizes, times = (", ".join(f"{each:.4g}" for each in column) for column in (curve.bytes, curve.seconds))
    return [f"[{name}]", f"bytes = [{sizes}]", f"seconds = [{times}]", ""]


def _host_table(line: Line, platform: str) -> Sequence[str]:
    waits = ["waits = true"] if platform == "gpu" else []
    return ["[host]", f"bandwidth = {line.rate:.3g}", f"latency = {max(line.start, 1e-9):.3g}", *waits, ""]


def _rate(name: str, precision: str, products: Mapping[str, Line]) -> str:
    return f"{precision} = {products[f'{name}.{precision}'].rate:.3g}"


def _memory(device: Device) -> int:
    """Return the memory of a device in bytes; of the host on CPUs."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
