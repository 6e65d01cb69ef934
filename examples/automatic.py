"""Automatic sharding of a model's train step over eight devices.

    python examples/automatic.py
    python examples/automatic.py --memory 12M

The mesh is `data`=4 x `model`=2, of virtual CPU devices. The script prints the plan, the loss of each step, and the
bytes received and memory of a device in a step compiled by XLA, compared with fully sharded data parallelism.
`--memory` limits the predicted memory of a device.
"""

import argparse
import math
import os
from typing import Any

MESH = {"data": 4, "model": 2}
BATCH, SEQUENCE, WIDTH, HIDDEN, LAYERS, STEPS = 32, 64, 128, 512, 4, 5
LEARNING_RATE = 1e-2

# Must be set before jax initializes its devices.
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
    """Return random parameters of all layers."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> jax.Array:
        return jnp.asarray(random.normal(size=shape, scale=shape[0] ** -0.5), jnp.float32)

    return [{"up": drawn(WIDTH, HIDDEN), "down": drawn(HIDDEN, WIDTH)} for _ in range(LAYERS)]


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the mean squared error of residual MLP layers."""
    for layer in params:
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return jnp.mean(jnp.square(x - y))


def train_step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
    """Run a step of gradient descent, and return the parameters and the loss before the step."""
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, gradients), value


FULLY_SHARDED = PartitionSpec(tuple(MESH))
"""Fully sharded data parallelism: parameters and batch are sharded over all devices."""


def report(name: str, step: Any, *arguments: Any) -> None:
    """Print the bytes received and the memory of a device in a step compiled by XLA."""
    types = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), arguments)
    compiled = step.lower(*types).compile()
    analysis = compiled.memory_analysis()
    needed = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    received = bytes_received(compiled.as_text(), math.prod(MESH.values()))
    print(f"{name:16} receives {received:12,.0f} bytes, needs {needed:12,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a model with automatic sharding.")
    parser.add_argument("--memory", metavar="SIZE", help="memory limit of a device, such as 12M (default: its memory)")
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
