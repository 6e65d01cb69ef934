"""Specs of `jax.shard_map` that gather, and small collectives."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, Mistake, constrained, descend
from lint_programs.planted import Written, tensor


def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v)


def mapped(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.shard_map(attend, in_specs=P("data"), out_specs=P("data"))(q, k, v)  # mistake


def mapped_in_scan(ws: jax.Array, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        y = jax.shard_map(jnp.tanh, in_specs=P("data"), out_specs=P("data"))(x * w)  # mistake
        return y, None

    return lax.scan(layer, x, ws)[0]


def mapped_whole(ws: jax.Array, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        y = jax.shard_map(jnp.dot, in_specs=(P(), P()), out_specs=P())(x, w)  # mistake
        return jnp.tanh(y), None

    return lax.scan(layer, x, ws)[0]


def mapped_with_gather(x: jax.Array, w: jax.Array) -> jax.Array:
    def local(x: jax.Array) -> jax.Array:
        return lax.all_gather(jnp.tanh(x), "data", tiled=True)

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P(), check_vma=False)(x)  # mistake
    return constrained(y, P("data")) @ w


def many_gathers(scales: list[jax.Array], x: jax.Array) -> jax.Array:
    for scale in scales:
        x = jnp.tanh(x * scale)  # mistake
    return x


def attend_in_parts(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(q @ k.swapaxes(-1, -2)) @ v

    split = P("data", "model")
    return jax.shard_map(local, in_specs=(split, P("data"), P("data")), out_specs=split)(q, k, v)  # mistake


def gathered_loss(w: jax.Array, x: jax.Array) -> jax.Array:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ lax.all_gather(w, "data", tiled=True).astype("bfloat16"))  # mistake

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P("data"))(w, x)
    return jnp.mean(y.astype("float32") ** 2)


MISTAKES: dict[str, Mistake] = {
    "a cast of weights after their all_gather": Mistake(
        "late-cast",
        Written(
            descend(gathered_loss),
            (tensor(2048, 8192, split=P("data")), tensor(8192, 2048, split=P("data"), dtype="bfloat16")),
            mesh=EIGHT,
        ),
        at=gathered_loss,
    ),
    "shard_map with all keys, whose scores are large": Mistake(
        "manual-computation-gathers",
        Written(attend_in_parts, (tensor(16, 8192, 256, split=P("data", "model")),) * 3),
        has_cure=False,
    ),
    "shard_map without the axis of the heads": Mistake(
        "manual-computation-gathers", Written(mapped, (tensor(16, 1024, 8, 64, split=P("data", None, "model")),) * 3)
    ),
    "shard_map in a scan": Mistake(
        "manual-computation-gathers",
        Written(
            mapped_in_scan, (tensor(8, 1024, split=P(None, "model")), tensor(8192, 1024, split=P("data", "model")))
        ),
        at=mapped_in_scan,
    ),
    "shard_map without any axis, in a scan": Mistake(
        "manual-computation-gathers",
        Written(mapped_whole, (tensor(8, 1024, 1024), tensor(8192, 1024, split=P("data"))), mesh=EIGHT),
        at=mapped_whole,
    ),
    "shard_map whose result is gathered": Mistake(
        "manual-computation-returns-whole", Written(mapped_with_gather, (DATA, tensor(1024, 1024)), mesh=EIGHT)
    ),
    "hundreds of sharded scales": Mistake(
        "many-small-collectives",
        Written(many_gathers, ([tensor(1024, split=P("data"))] * 160, DATA), mesh=EIGHT),
        has_cure=False,
    ),
}
