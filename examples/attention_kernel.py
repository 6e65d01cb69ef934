"""An opaque attention kernel in a train step on eight devices.

    python examples/attention_kernel.py

The kernel processes keys block by block, as flash attention does, and never materializes all scores. Its annotation
allows sharding along the batch `b` and the heads `h`, but not along the sequences or the head size. A policy shards the
batch over "data" and the heads over "model". Propagation shards the parameters, the inputs and all intermediate values,
and each device runs the kernel on its shard of batch and heads.
"""

import os
import re
from collections.abc import Sequence

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from xdsl.ir import Operation, SSAValue

import sdy

BATCH, SEQUENCE, WIDTH, HEADS, BLOCK = 8, 64, 32, 4, 16
Parameters = dict[str, jax.Array]


@sdy.register_op("b h s^ d^, b h t^ d^, b h t^ d^ -> b h s^ d^")
def attention(q: jax.Array, k: jax.Array, v: jax.Array, block: int = BLOCK) -> jax.Array:
    """Compute attention of (batch, heads, sequence, head size), `block` keys at a time."""

    def add_block(state: tuple[jax.Array, ...], start: jax.Array) -> tuple[tuple[jax.Array, ...], None]:
        most, total, weighted = state
        keys, values = (jax.lax.dynamic_slice_in_dim(x, start, block, axis=2) for x in (k, v))
        scores = jnp.einsum("bhsd,bhtd->bhst", q, keys) / q.shape[-1] ** 0.5
        new_most = jnp.maximum(most, scores.max(-1))
        weights, shrink = jnp.exp(scores - new_most[..., None]), jnp.exp(most - new_most)
        total = total * shrink + weights.sum(-1)
        return (new_most, total, weighted * shrink[..., None] + jnp.einsum("bhst,bhtd->bhsd", weights, values)), None

    start = (jnp.full(q.shape[:-1], -jnp.inf), jnp.zeros(q.shape[:-1]), jnp.zeros_like(q))
    (_, total, weighted), _ = jax.lax.scan(add_block, start, jnp.arange(0, k.shape[2], block))
    return weighted / total[..., None]


def loss(parameters: Parameters, x: jax.Array) -> jax.Array:
    q, k, v = (jnp.einsum("bse,ehd->bhsd", x, parameters[name]) for name in ("query", "key", "value"))
    return ((jnp.einsum("bhsd,hde->bse", attention(q, k, v), parameters["output"]) - x) ** 2).mean()


def step(parameters: Parameters, x: jax.Array) -> tuple[jax.Array, Parameters]:
    value, gradients = jax.value_and_grad(loss)(parameters, x)
    return value, jax.tree.map(lambda old, gradient: old - 0.1 * gradient, parameters, gradients)


def policy(operations: Sequence[Operation]) -> None:
    """Shard each call of the kernel."""
    for op in operations:
        if sdy.operator_name(op) == "attention":
            sdy.split(op, operand=0, dim=0, axis="data")
            sdy.split(op, operand=0, dim=1, axis="model")


def layout(value: SSAValue) -> str:
    """Format the axes that shard each dimension of a tensor."""
    sharding = sdy.get_sharding(value)
    assert sharding is not None
    return " ".join("+".join(axis.name for axis in axes) or "-" for axes in sharding.dim_axes)


def main() -> None:
    keys = jax.random.split(jax.random.key(0), 5)
    head = WIDTH // HEADS
    parameters = {
        name: jax.random.normal(key, (WIDTH, HEADS, head)) / WIDTH**0.5
        for name, key in zip(("query", "key", "value"), keys, strict=False)
    }
    parameters["output"] = jax.random.normal(keys[3], (HEADS, head, WIDTH)) / WIDTH**0.5
    x = jax.random.normal(keys[4], (BATCH, SEQUENCE, WIDTH))

    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    lowered = sdy.jit(step, mesh=mesh, policy=policy).lower(parameters, x)

    for op in lowered.module.walk():
        if (name := sdy.operator_name(op)) is not None:
            operands, results = (", ".join(map(layout, values)) for values in (op.operands, op.results))
            print(f"{name}: {operands} -> {results}")
    print("collectives")
    text = lowered.device_text()
    for name, groups in re.findall(r"stablehlo\.(all_\w+|reduce_scatter).*?groups = dense<(.*?)>", text):
        print(f"  {name} among {groups}")

    value, updated = lowered.compile()(parameters, x)
    expected_value, expected = jax.jit(step)(parameters, x)
    differences = [
        jnp.abs(a - b).max() for a, b in zip(jax.tree.leaves(updated), jax.tree.leaves(expected), strict=True)
    ]
    print(f"loss {value:.6f}, on one device {expected_value:.6f}")
    print(f"agrees with one device: {max(differences) < 1e-5}")


if __name__ == "__main__":
    main()
