"""Pallas kernels, forward and backward, in a train step on eight devices: attention and a grouped matrix product.

    python examples/pallas_kernels.py

A kernel is opaque to the compiler. Each kernel is written for one device, with a gradient of kernels by
`jax.custom_vjp`. Its annotation declares the dimensions that can be sharded: attention along the batch `b` and the
heads `h`; the grouped product along the groups `g`, the rows `m`, the columns `n`, and the contracted `k`, whose
partial sums are all-reduced. The gradients are sharded likewise.

The step trains a layer with experts. Only the batch and the parameters have given shardings: the batch over "data",
heads and experts over "model". Pallas interprets the kernels on CPU, and compiles them on other backends.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from math import gcd
from typing import Any

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.ir import SSAValue

import sdy

BATCH, SEQUENCE, WIDTH, HEADS, EXPERTS = 8, 64, 32, 4, 4
BLOCK = 128
"""The maximal number of rows and columns of a result block."""

Parameters = dict[str, jax.Array]
pallas_call = partial(pl.pallas_call, interpret=jax.default_backend() == "cpu")


def weights(q: jax.Array, k: jax.Array) -> jax.Array:
    """Return the attention weights of queries and keys."""
    return jax.nn.softmax(q @ k.T / q.shape[-1] ** 0.5)


def attend(q: Any, k: Any, v: Any, out: Any) -> None:
    """Attention kernel for one head of one sequence."""
    out[0, 0] = weights(q[0, 0], k[0, 0]) @ v[0, 0]


def attend_backward(q: Any, k: Any, v: Any, d_out: Any, d_q: Any, d_k: Any, d_v: Any) -> None:
    """Gradient kernel of attention; it recomputes the weights."""
    p, scale = weights(q[0, 0], k[0, 0]), q.shape[-1] ** -0.5
    d_p = d_out[0, 0] @ v[0, 0].T
    d_scores = p * (d_p - (d_p * p).sum(-1, keepdims=True)) * scale
    d_q[0, 0], d_k[0, 0], d_v[0, 0] = d_scores @ k[0, 0], d_scores.T @ q[0, 0], p.T @ d_out[0, 0]


def for_each_head(kernel: Callable[..., None], results: int, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Call a kernel for each head of each sequence of (batch, heads, sequence, head size)."""

    def head(b: int, h: int) -> tuple[int, ...]:
        return b, h, 0, 0

    batch, heads = arrays[0].shape[:2]
    blocks = [pl.BlockSpec((1, 1, *array.shape[2:]), head) for array in arrays]
    types = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays[:results]]
    return tuple(pallas_call(kernel, types, grid=(batch, heads), in_specs=blocks, out_specs=blocks[:results])(*arrays))


@jax.custom_vjp
def flash(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return for_each_head(attend, 1, q, k, v)[0]


def flash_forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    return flash(q, k, v), (q, k, v)


def flash_backward(inputs: tuple[jax.Array, ...], d_out: jax.Array) -> tuple[jax.Array, ...]:
    return for_each_head(attend_backward, 3, *inputs, d_out)


flash.defvjp(flash_forward, flash_backward)


@sdy.register_op("b h s^ d^, b h s^ d^, b h s^ d^ -> b h s^ d^")
def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Compute attention of (batch, heads, sequence, head size)."""
    return flash(q, k, v)


def multiply(x: Any, w: Any, out: Any) -> None:
    """Kernel for one block of one group's product."""
    out[0] = x[0] @ w[0]


def of_rows(g: int, i: int, j: int) -> tuple[int, ...]:
    return g, i, 0


def of_columns(g: int, i: int, j: int) -> tuple[int, ...]:
    return g, 0, j


def of_both(g: int, i: int, j: int) -> tuple[int, ...]:
    return g, i, j


@jax.custom_vjp
def products(x: jax.Array, w: jax.Array) -> jax.Array:
    (groups, rows, inner), columns = x.shape, w.shape[-1]
    m, n = gcd(rows, BLOCK), gcd(columns, BLOCK)
    return pallas_call(
        multiply,
        jax.ShapeDtypeStruct((groups, rows, columns), x.dtype),
        grid=(groups, rows // m, columns // n),
        in_specs=[pl.BlockSpec((1, m, inner), of_rows), pl.BlockSpec((1, inner, n), of_columns)],
        out_specs=pl.BlockSpec((1, m, n), of_both),
    )(x, w)


def products_forward(x: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return products(x, w), (x, w)


def products_backward(inputs: tuple[jax.Array, jax.Array], d_out: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, w = inputs
    return products(d_out, w.swapaxes(1, 2)), products(x.swapaxes(1, 2), d_out)


products.defvjp(products_forward, products_backward)


@sdy.register_op("g m k+, g k+ n -> g m n")
def grouped_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    """Multiply each group of rows with its own matrix: (groups, rows, inner) and (groups, inner, columns)."""
    return products(x, w)


def layer(parameters: Parameters, x: jax.Array) -> jax.Array:
    """Apply attention, and one expert to each chunk of the sequence: (batch, sequence, width)."""
    q, k, v = (jnp.einsum("bse,ehd->bhsd", x, parameters[name]) for name in ("query", "key", "value"))
    x = x + jnp.einsum("bhsd,hde->bse", attention(q, k, v), parameters["output"])
    of_experts = x.reshape(BATCH, EXPERTS, -1, WIDTH).swapaxes(0, 1).reshape(EXPERTS, -1, WIDTH)
    hidden = jax.nn.gelu(grouped_matmul(of_experts, parameters["up"]))
    outputs = grouped_matmul(hidden, parameters["down"])
    return x + outputs.reshape(EXPERTS, BATCH, -1, WIDTH).swapaxes(0, 1).reshape(x.shape)


def step(parameters: Parameters, x: jax.Array) -> tuple[jax.Array, Parameters]:
    value, gradients = jax.value_and_grad(lambda parameters: (layer(parameters, x) ** 2).mean())(parameters)
    return value, jax.tree.map(lambda old, gradient: old - 0.1 * gradient, parameters, gradients)


SHAPES = {
    **dict.fromkeys(("query", "key", "value"), (WIDTH, HEADS, WIDTH // HEADS)),
    "output": (HEADS, WIDTH // HEADS, WIDTH),
    "up": (EXPERTS, WIDTH, 2 * WIDTH),
    "down": (EXPERTS, 2 * WIDTH, WIDTH),
}
SPLIT = {
    **dict.fromkeys(("query", "key", "value"), P(None, "model")),
    **dict.fromkeys(("output", "up", "down"), P("model")),
}


def shown(value: SSAValue) -> str:
    """Format the axes that shard each dimension of a tensor."""
    sharding = sdy.get_sharding(value)
    assert sharding is not None
    return " ".join("+".join(axis.name for axis in axes) or "-" for axes in sharding.dim_axes)


def main() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    keys = dict(zip((*SHAPES, "x"), jax.random.split(jax.random.key(0), len(SHAPES) + 1), strict=True))
    parameters = {
        name: jax.device_put(jax.random.normal(keys[name], shape) / WIDTH**0.5, NamedSharding(mesh, SPLIT[name]))
        for name, shape in SHAPES.items()
    }
    x = jax.device_put(jax.random.normal(keys["x"], (BATCH, SEQUENCE, WIDTH)), NamedSharding(mesh, P("data")))

    lowered = sdy.jit(step).lower(parameters, x)
    for op in lowered.module.walk():
        if (name := sdy.operator_name(op)) is not None:
            operands, results = (", ".join(map(shown, values)) for values in (op.operands, op.results))
            print(f"{name}: {operands} -> {results}")
    for name, groups in re.findall(
        r"stablehlo\.(all_\w+|reduce_scatter|collective_\w+).*?dense<(.*?)>", lowered.device_text()
    ):
        print(f"  {name} among {groups}")
    print(f"each device receives {sdy.account(lowered).bytes_received:,.0f} bytes")

    value, updated = lowered.compile()(parameters, x)
    expected_value, expected = jax.jit(step)(*jax.device_get((parameters, x)))
    same = jax.tree.map(lambda a, b: bool(jnp.allclose(a, b, atol=1e-5)), updated, expected)
    print(f"loss {value:.6f}, on one device {expected_value:.6f}")
    print(f"agrees with one device: {all(same.values())}")


if __name__ == "__main__":
    main()
