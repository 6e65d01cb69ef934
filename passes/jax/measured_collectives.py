"""Times of collectives on jax's devices, by their kind, number of devices and size."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sdy.passes.spmd.costs.hardware import Curve

_AXES = ("groups", "devices")
_AXIS = "devices"
_ELEMENT = 4
"""Bytes of an element."""
_TURNS = 10
"""The number of runs of a program; it is fixed, as processes have to run a collective equally often."""

Local = Callable[[jax.Array], jax.Array]
"""A collective, applied to the shard of a device."""

_COLLECTIVES: Mapping[str, tuple[Callable[[int], Local], Callable[[int], float]]] = {
    "all_gather": (lambda n: partial(lax.all_gather, axis_name=_AXIS, tiled=True), lambda n: n - 1),
    "all_reduce": (lambda n: partial(lax.psum, axis_name=_AXIS), lambda n: 2 * (n - 1) / n),
    "all_to_all": (
        lambda n: partial(lax.all_to_all, axis_name=_AXIS, split_axis=0, concat_axis=0, tiled=True),
        lambda n: (n - 1) / n,
    ),
    "collective_permute": (
        lambda n: partial(lax.ppermute, axis_name=_AXIS, perm=[(i, (i + 1) % n) for i in range(n)]),
        lambda n: 1,
    ),
    "reduce_scatter": (lambda n: partial(lax.psum_scatter, axis_name=_AXIS, tiled=True), lambda n: (n - 1) / n),
}
"""For each kind, the collective of n devices, and the bytes that a device receives for each byte of its shard."""


def collective_curves(sizes: Sequence[int], launch: float) -> dict[tuple[str, int], Curve]:
    """Measure all kinds of collectives in groups of each number of devices that divides the number of devices.

    Args:
        sizes: The bytes that a device is to receive, in ascending order.
        launch: The seconds in which the host starts a program, which are subtracted.
    """
    count = jax.device_count()
    groups = [group for group in range(2, count + 1) if count % group == 0]
    return {(kind, group): _curve(kind, group, sizes, launch) for kind in _COLLECTIVES for group in groups}


def _curve(kind: str, group: int, sizes: Sequence[int], launch: float) -> Curve:
    points = dict(collective_seconds(kind, group, sizes))
    return Curve(tuple(points), tuple(max(seconds - launch, seconds / 10) for seconds in points.values()))


def collective_seconds(kind: str, group: int, sizes: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield the bytes that a device receives in a collective, about each of `sizes`, and the seconds of its program."""
    devices = np.array(jax.devices()).reshape(-1, group)
    mesh, spec = Mesh(devices, _AXES), PartitionSpec(_AXES)
    local, share = _COLLECTIVES[kind]
    run = jax.jit(jax.shard_map(local(group), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    for size in sizes:
        elements = max(round(size / share(group) / _ELEMENT / group), 1) * group
        x = jax.device_put(jnp.ones(devices.size * elements, jnp.float32), NamedSharding(mesh, spec))
        yield elements * _ELEMENT * share(group), usual_seconds(partial(run, x))


def left_out(curve: Curve) -> float:
    """Return the mean relative error at each inner point of a curve that is drawn without it."""
    errors: list[float] = []
    for place in range(1, len(curve.bytes) - 1):
        others = [*range(place), *range(place + 1, len(curve.bytes))]
        without = Curve(tuple(curve.bytes[each] for each in others), tuple(curve.seconds[each] for each in others))
        errors.append(abs(without.at(curve.bytes[place]) / curve.seconds[place] - 1))
    return sum(errors) / len(errors) if errors else 0.0


def usual_seconds(run: Callable[[], jax.Array]) -> float:
    """Return the median time of several runs in seconds, after a run that compiles."""
    run().block_until_ready()
    times: list[float] = []
    for _ in range(_TURNS):
        begin = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - begin)
    return median(times)
