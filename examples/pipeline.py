"""A small transformer trained as a circular pipeline: four stages on eight virtual devices.

    python examples/pipeline.py

The mesh is `stage`=4 x `data`=2, of virtual CPU devices. Each stage is a block; a batch goes through the stages in
eight microbatches. The script prints the predicted bubble, the collectives of a step, the loss of each step, and how
far the first gradients are from those of the blocks one after the other.
"""

import math
import os
from typing import Any

MESH = {"stage": 4, "data": 2}
MICROBATCHES, BATCH, SEQUENCE, WIDTH, HEADS, STEPS = 8, 4, 16, 32, 4, 5
LEARNING_RATE = 1e-1

# Must be set before jax initializes its devices.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + (
    f" --xla_force_host_platform_device_count={math.prod(MESH.values())}"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402

import sdy  # noqa: E402

Params = dict[str, jax.Array]


def initial_params() -> Params:
    """Return random parameters of all blocks, stacked along the first dimension."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> jax.Array:
        return jnp.asarray(random.normal(size=(MESH["stage"], *shape), scale=WIDTH**-0.5), jnp.float32)

    return {
        "query": drawn(WIDTH, WIDTH),
        "key": drawn(WIDTH, WIDTH),
        "value": drawn(WIDTH, WIDTH),
        "up": drawn(WIDTH, 4 * WIDTH),
        "down": drawn(4 * WIDTH, WIDTH) / 2,
    }


def normalized(x: jax.Array) -> jax.Array:
    """Scale the rows of x to a mean square of one."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)


def block(w: Params, x: jax.Array) -> jax.Array:
    """Apply a transformer block with causal attention."""
    y = normalized(x)
    query, key, value = (
        (y @ w[name]).reshape(*y.shape[:-1], HEADS, WIDTH // HEADS) for name in ("query", "key", "value")
    )
    x = x + jax.nn.dot_product_attention(query, key, value, is_causal=True).reshape(x.shape)
    return x + jax.nn.gelu(normalized(x) @ w["up"]) @ w["down"]


def loss(params: Params, xs: jax.Array, ys: jax.Array) -> jax.Array:
    """Return the mean squared error of all microbatches after the pipeline."""
    return jnp.mean(jnp.square(sdy.mpmd.circular(jax.checkpoint(block), params, xs) - ys))


def serial_loss(params: Params, xs: jax.Array, ys: jax.Array) -> jax.Array:
    """Return the same error of the blocks one after the other."""
    for stage in range(MESH["stage"]):
        xs = jax.vmap(block, (None, 0))(jax.tree.map(lambda leaf, stage=stage: leaf[stage], params), xs)
    return jnp.mean(jnp.square(xs - ys))


def train_step(params: Params, xs: jax.Array, ys: jax.Array) -> tuple[Params, jax.Array]:
    """Run a step of gradient descent, and return the parameters and the loss before the step."""
    value, gradients = jax.value_and_grad(loss)(params, xs, ys)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, gradients), value


def difference(these: Any, others: Any) -> float:
    """Return the largest difference between two trees of arrays."""
    pairs = zip(jax.tree.leaves(these), jax.tree.leaves(others), strict=True)
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) for a, b in pairs)


def main() -> None:
    mesh = jax.make_mesh(tuple(MESH.values()), tuple(MESH), (AxisType.Auto,) * len(MESH))
    params = jax.device_put(initial_params(), NamedSharding(mesh, PartitionSpec("stage")))
    random = np.random.default_rng(1)
    xs, ys = (
        jax.device_put(
            random.normal(size=(MICROBATCHES, BATCH, SEQUENCE, WIDTH)).astype(np.float32),
            NamedSharding(mesh, PartitionSpec(None, "data")),
        )
        for _ in range(2)
    )
    stage = sdy.mpmd.StageCost(forward=1.0, backward=3.0, sent=BATCH * SEQUENCE * WIDTH * 4 / MESH["data"])
    print(sdy.mpmd.predict([stage] * MESH["stage"], MICROBATCHES, schedule="circular"), end="\n\n")

    step = sdy.jit(train_step)
    print(sdy.account(step, params, xs, ys), end="\n\n")
    gradients, expected = (
        jit(jax.grad(function))(params, xs, ys) for jit, function in ((sdy.jit, loss), (jax.jit, serial_loss))
    )
    print(f"largest difference from the serial program: {difference(gradients, expected):.1e}")
    for number in range(STEPS):
        params, value = step(params, xs, ys)
        print(f"step {number}: loss {value:.4f}")


if __name__ == "__main__":
    main()
