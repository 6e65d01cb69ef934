"""A decoder-only transformer train step, sharded as Megatron-LM does it, as StableHLO text.

    python examples/transformer.py > transformer.mlir
    python examples/transformer.py --layers 12 -o transformer12.mlir

The step is embedding, pre-norm blocks (RMSNorm, causal multi-head attention, GELU MLP), cross-entropy, gradients and a
momentum update. The mesh is `data`=4 x `model`=2: the batch is sharded over `data`; over `model`, the first projections
of each block are sharded by columns and the last ones by rows, so that attention and MLP each need one all-reduce
forward and one backward (Shoeybi et al., 2019, https://arxiv.org/abs/1909.08053).
"""

import argparse
import math
import os
import sys
from pathlib import Path
from typing import Any

MESH = {"data": 4, "model": 2}
BATCH, SEQUENCE, VOCABULARY, WIDTH, HEADS, HIDDEN = 16, 32, 256, 64, 4, 256
LEARNING_RATE, MOMENTUM = 1e-2, 0.9

# JAX lowers shardings over a mesh only if it has that many devices; the text does not depend on their kind.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + (
    f" --xla_force_host_platform_device_count={math.prod(MESH.values())}"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

Params = dict[str, Any]


def parameter_specs(layers: int) -> tuple[Params, Params]:
    """Return the shape and the PartitionSpec of every parameter, as two trees of the same structure."""
    head = WIDTH // HEADS
    shapes: Params = {
        "attention_norm": (WIDTH,),
        "query": (WIDTH, HEADS, head),
        "key": (WIDTH, HEADS, head),
        "value": (WIDTH, HEADS, head),
        "output": (HEADS, head, WIDTH),
        "mlp_norm": (WIDTH,),
        "up": (WIDTH, HIDDEN),
        "down": (HIDDEN, WIDTH),
    }
    specs: Params = {
        "attention_norm": PartitionSpec(None),
        "query": PartitionSpec(None, "model", None),
        "key": PartitionSpec(None, "model", None),
        "value": PartitionSpec(None, "model", None),
        "output": PartitionSpec("model", None, None),
        "mlp_norm": PartitionSpec(None),
        "up": PartitionSpec(None, "model"),
        "down": PartitionSpec("model", None),
    }
    model_shapes: Params = {
        "embedding": (VOCABULARY, WIDTH),
        "final_norm": (WIDTH,),
        "unembedding": (WIDTH, VOCABULARY),
    }
    model_specs: Params = {
        "embedding": PartitionSpec(None, None),
        "final_norm": PartitionSpec(None),
        "unembedding": PartitionSpec(None, "model"),
    }
    return (
        {**model_shapes, "blocks": [dict(shapes) for _ in range(layers)]},
        {**model_specs, "blocks": [dict(specs) for _ in range(layers)]},
    )


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(x: jax.Array, block: Params) -> jax.Array:
    """Causal multi-head self-attention on [batch, sequence, width]."""
    query, key, value = (jnp.einsum("bsw,whd->bshd", x, block[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.shape[-1])
    causal = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bqhd,hdw->bqw", jnp.einsum("bhqk,bkhd->bqhd", weights, value), block["output"])


def mlp(x: jax.Array, block: Params) -> jax.Array:
    return jax.nn.gelu(x @ block["up"]) @ block["down"]


def loss(params: Params, tokens: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean cross-entropy of predicting targets [batch, sequence] from tokens [batch, sequence]."""
    x = params["embedding"][tokens]
    for block in params["blocks"]:
        x = x + attention(rms_norm(x, block["attention_norm"]), block)
        x = x + mlp(rms_norm(x, block["mlp_norm"]), block)
    log_probabilities = jax.nn.log_softmax(rms_norm(x, params["final_norm"]) @ params["unembedding"])
    one_hot = jax.nn.one_hot(targets, VOCABULARY, dtype=x.dtype)
    return -jnp.mean(jnp.sum(log_probabilities * one_hot, axis=-1))


def step(params: Params, momentum: Params, tokens: jax.Array, targets: jax.Array) -> tuple[Params, Params, jax.Array]:
    value, gradients = jax.value_and_grad(loss)(params, tokens, targets)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradients)
    params = jax.tree.map(lambda p, m: p - LEARNING_RATE * m, params, momentum)
    return params, momentum, value


def lower(layers: int) -> jax.stages.Lowered:
    """Lower a train step with `layers` blocks to StableHLO."""
    mesh = jax.make_mesh(tuple(MESH.values()), tuple(MESH), axis_types=(jax.sharding.AxisType.Auto,) * len(MESH))
    shapes, specs = parameter_specs(layers)
    params = jax.tree.map(
        lambda shape, spec: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec)),
        shapes,
        specs,
        is_leaf=lambda leaf: isinstance(leaf, tuple),
    )
    batch = jax.ShapeDtypeStruct(
        (BATCH, SEQUENCE), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec("data", None))
    )
    return jax.jit(step).lower(params, params, batch, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a sharded transformer train step as StableHLO text.")
    parser.add_argument("--layers", type=int, default=2, help="number of transformer blocks (default: 2)")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    args = parser.parse_args()
    if args.layers < 1:
        parser.error(f"--layers must be at least 1, not {args.layers}")
    text = lower(args.layers).as_text()
    if args.output:
        args.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
