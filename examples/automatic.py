"""The compiler chooses how a model's train step is split over eight devices, and trains it.

    python examples/automatic.py
    python examples/automatic.py --memory 12M

The mesh is `data`=4 x `model`=2, of virtual CPU devices. The plan is printed, then the loss of each step, and then what
a device receives in a step and needs at most, as XLA compiled it; beside fully sharded data parallelism, which would be
the first thing to try by hand. With `--memory`, no device may use more than so much, as the plan predicts it.
"""

import argparse
import math
import os
from typing import Any

MESH = {"data": 4, "model": 2}
BATCH, SEQUENCE, WIDTH, HIDDEN, LAYERS, STEPS = 32, 64, 128, 512, 4, 5
LEARNING_RATE = 1e-2

# Before jax looks for devices.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + (
    f" --xla_force_host_platform_device_count={math.prod(MESH.values())}"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec  # noqa: E402

import sdy  # noqa: E402
from sdy.passes.jax.hlo_received import bytes_received  # noqa: E402

Params = list[dict[str, jax.Array]]


def initial_params() -> Params:
    """The parameters of all layers, drawn by chance."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> jax.Array:
        return jnp.asarray(random.normal(size=shape, scale=shape[0] ** -0.5), jnp.float32)

    return [{"up": drawn(WIDTH, HIDDEN), "down": drawn(HIDDEN, WIDTH)} for _ in range(LAYERS)]


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """Of layers that mix the elements of each place of a sequence, what is wrong on average."""
    for layer in params:
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return jnp.mean(jnp.square(x - y))


def train_step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
    """A step of gradient descent, and what the loss was before it."""
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, gradients), value


FULLY_SHARDED = PartitionSpec(tuple(MESH))
"""Parameters and batch are split over all devices."""


def report(name: str, step: Any, *arguments: Any) -> None:
    """Print what a device receives and needs in a step, as XLA has it."""
    types = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), arguments)
    compiled = step.lower(*types).compile()
    analysis = compiled.memory_analysis()
    needed = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    received = bytes_received(compiled.as_text(), math.prod(MESH.values()))
    print(f"{name:16} receives {received:12,.0f} bytes, needs {needed:12,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a model whose layout the compiler chooses.")
    parser.add_argument("--memory", metavar="SIZE", help="what a device may use, as 12M (default: all that it has)")
    memory = parser.parse_args().memory
    mesh = sdy.Mesh.of(MESH)
    random = np.random.default_rng(1)
    x, y = (jnp.asarray(random.normal(size=(BATCH, SEQUENCE, WIDTH)), jnp.float32) for _ in range(2))
    params = initial_params()

    step = sdy.jit(train_step, mesh=mesh, in_shardings=sdy.Auto(hardware="cpu-8", memory=memory))
    print(step.plan(params, x, y), end="\n\n")
    for number in range(STEPS):
        params, value = step(params, x, y)
        print(f"step {number}: loss {value:.4f}")
    print()
    report("as planned", step, params, x, y)
    report("fully sharded", sdy.jit(train_step, mesh=mesh, in_shardings=FULLY_SHARDED), params, x, y)


if __name__ == "__main__":
    main()
