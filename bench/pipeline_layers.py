"""Measured and predicted time of training steps in stages, with layers that compute.

    python bench/pipeline_layers.py [--microbatches N ...] [--width N] [--rows N] [--steps N]

Two processes, each on one core with one CPU device, run two or four stages of dense layers with each schedule of
`sdy.mpmd.stages`, and with `sdy.mpmd.circular` as one program. The same processes measure the hardware. The table
shows the time of a step in a sequence of steps, and its ratio to the predicted one. `bench/pipeline_torch.py` runs the
same layers under `torch.distributed.pipelining`.
"""

import argparse
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

PROCESSES, LAYERS = 2, 4
"""The number of processes, and of layers of each."""


@dataclass(frozen=True)
class Sizes:
    """The arguments of the command."""

    microbatches: Sequence[int]
    width: int
    rows: int
    steps: int


def train_step(pp: Any, microbatches: int) -> Callable[..., Any]:
    """Return a training step of all layers, divided evenly among the stages."""
    import jax
    import jax.numpy as jnp

    import sdy

    def stage(weights: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        for each in weights:
            x = jnp.tanh(x @ each)
        return x

    def last_stage(weights: Sequence[jax.Array], x: jax.Array, labels: jax.Array) -> jax.Array:
        return jnp.square(stage(weights, x) - labels).mean()

    def loss(weights: Sequence[jax.Array], x: jax.Array, labels: jax.Array) -> jax.Array:
        share = len(weights) // len(pp)
        parts = [weights[index * share :][:share] for index in range(len(pp))]
        for index, part in enumerate(parts[:-1]):
            x = pp.stage(index)(stage)(part, x)
        return pp.stage(len(pp) - 1)(last_stage)(parts[-1], x, labels)

    def train(weights: Sequence[jax.Array], x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Any]:
        value, gradients = sdy.accumulate(jax.value_and_grad(loss), weights, x, labels, microbatches=microbatches)
        return value, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    return train


def circular_step(microbatches: int) -> Callable[..., Any]:
    """Return the same step with layers that are stacked, as one program."""
    import jax
    import jax.numpy as jnp

    import sdy

    def stage(weights: jax.Array, x: jax.Array) -> jax.Array:
        for index in range(weights.shape[0]):
            x = jnp.tanh(x @ weights[index])
        return x

    def train(weights: jax.Array, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
        def loss(weights: jax.Array) -> jax.Array:
            parts = x.reshape(microbatches, -1, x.shape[-1])
            return jnp.square(sdy.mpmd.circular(stage, weights, parts).reshape(x.shape) - labels).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        return value, weights - 0.1 * gradient

    return train


def seconds_of(step: Callable[..., Any], state: Any, batch: Sequence[Any], steps: int) -> float:
    """Return the seconds of a step in a sequence of steps, after two that compile."""
    import jax

    def run(count: int) -> None:
        nonlocal state
        for _ in range(count):
            _, state = step(state, *batch)
        jax.block_until_ready([shard.data for each in jax.tree.leaves(state) for shard in each.addressable_shards])

    run(2)
    begin = perf_counter()
    run(steps)
    return (perf_counter() - begin) / steps


def process(index: int, coordinator: str, folder: Path, sizes: Sizes) -> None:
    """Measure as process `index`; process 0 prints the rows of the table."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[index]})
    import jax
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    import sdy
    from sdy.mesh import Mesh
    from sdy.passes.account.partitioned_program import partitioned_program
    from sdy.passes.jax.measured_hardware import measured_hardware
    from sdy.passes.mpmd.schedules import SCHEDULES
    from sdy.passes.spmd.costs.hardware import hardware_of
    from sdy.passes.spmd.costs.step_time import StepTimes

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_cross_host_transfer_socket_address", f"127.0.0.1:{free_port()}")
    jax.distributed.initialize(coordinator, PROCESSES, index)
    file = folder / f"hardware{index}.toml"
    file.write_text(measured_hardware(sizes.width, 1 << 22))
    mesh = jax.make_mesh((PROCESSES,), ("stage",), axis_types=(AxisType.Auto,))
    random = np.random.default_rng(0)
    shape = (LAYERS * PROCESSES, sizes.width, sizes.width)
    weights = (random.normal(size=shape) * sizes.width**-0.5).astype(np.float32)

    def show(name: str, microbatches: int, seconds: float, predicted: float) -> None:
        if index == 0:
            print(f"{name:16} {microbatches:12}  {predicted * 1e3:7.1f} ms  {seconds * 1e3:7.1f} ms  ", end="")
            print(f"{seconds / predicted:5.2f}", flush=True)

    for microbatches in sizes.microbatches:
        rows = microbatches * sizes.rows
        batch = random.normal(size=(2, rows, sizes.width)).astype(np.float32)
        for name, kind in SCHEDULES.items():
            pp = sdy.mpmd.stages(mesh, chunks=2 if kind.has_chunks else 1)
            step = pp.jit(train_step(pp, microbatches), schedule=name, donate_argnums=0)
            predicted = step.plan([*weights], *batch, hardware=str(file), unpipelined=False).seconds
            show(name, microbatches, seconds_of(step, [*weights], [*batch], sizes.steps), predicted)
        sharded = NamedSharding(mesh, PartitionSpec("stage"))
        stacked = jax.device_put(weights.reshape(PROCESSES, LAYERS, *shape[1:]), sharded)
        placed = jax.device_put(batch, NamedSharding(mesh, PartitionSpec()))
        one = sdy.jit(circular_step(microbatches))
        local = partitioned_program(one, stacked, *placed).local
        predicted = StepTimes(local, Mesh.of(dict(mesh.shape)), hardware_of(str(file))).cost().seconds
        show("circular, SPMD", microbatches, seconds_of(one, stacked, [*placed], sizes.steps), predicted)


def free_port() -> int:
    """Return a port that no process listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sizes_of(arguments: Sequence[str]) -> Sizes:
    """Parse the arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--microbatches", type=int, nargs="+", default=[4, 8], metavar="N")
    parser.add_argument("--width", type=int, default=512, help="width of the layers (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=256, help="rows of a microbatch (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="steps of each sequence (default: %(default)s)")
    return Sizes(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sizes = sizes_of(sys.argv[1:])
    print("schedule         microbatches   predicted    measured  ratio", flush=True)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        coordinator = f"127.0.0.1:{free_port()}"
        measurements = [pool.submit(process, index, coordinator, Path(folder), sizes) for index in range(PROCESSES)]
        for each in measurements:
            each.result()
