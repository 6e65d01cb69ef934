"""State of decoding: caches of keys and values, and recurrent states."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs import good
from lint_programs.mistake import EIGHT, Mistake
from lint_programs.planted import Written, tensor

HEADS = P(None, "model")


def recur(state: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
    state = state + jnp.einsum("bhk,bhv->bhkv", k, v)
    return state, jnp.einsum("bhk,bhkv->bhv", q, state)


def recurring(spec: P) -> Written:
    rows = [tensor(4096, 32, 128, split=P("data", "model"))] * 3
    results = spec, P("data", "model")
    return Written(recur, (tensor(4096, 32, 128, 128, split=spec), *rows), results=results)


def decode(params: Any, cache: Any, x: jax.Array, position: jax.Array) -> Any:
    q, k, v = (jnp.einsum("bd,dhk->bhk", x, params[name]) for name in "qkv")
    keys = lax.dynamic_update_slice(cache["keys"], k[:, None], (0, position, 0, 0))
    values = lax.dynamic_update_slice(cache["values"], v[:, None], (0, position, 0, 0))
    scores = jax.nn.softmax(jnp.einsum("bhk,bthk->bht", q, keys))
    return {"keys": keys, "values": values}, jnp.einsum("bht,bthk->bhk", scores, values)


def decoding(spec: P, weight: P = HEADS, batch: int = 16) -> Written:
    params = {name: tensor(1024, 8, 128, split=weight) for name in "qkv"}
    cache = {name: tensor(batch, 1024, 8, 128, split=spec) for name in ("keys", "values")}
    arguments = params, cache, tensor(batch, 1024, split=P("data")), tensor(dtype="int32")
    return Written(decode, arguments, donated=(1,))


def generate(params: Any, cache: Any, x: jax.Array) -> Any:
    def turn(carry: Any, position: jax.Array) -> tuple[Any, None]:
        cache, x = carry
        cache, attended = decode(params, cache, x, position)
        return (cache, x + jnp.einsum("bhk,hkd->bd", attended, params["out"])), None

    return lax.scan(turn, (cache, x), jnp.arange(64))[0]


def generating(spec: P, weight: P, out: P, x: P) -> Written:
    params = {name: tensor(2048, 16, 128, split=weight) for name in "qkv"} | {"out": tensor(16, 128, 2048, split=out)}
    cache = {name: tensor(64, 2048, 16, 128, split=spec) for name in ("keys", "values")}
    return Written(generate, (params, cache, tensor(64, 2048, split=x)), mesh=EIGHT)


def decode_apart(keys: Any, values: Any, x: jax.Array, position: jax.Array, params: Any) -> Any:
    cache, attended = decode(params, {"keys": keys, "values": values}, x, position)
    return cache["keys"], cache["values"], attended


def generate_constrained(params: Any, cache: Any, x: jax.Array) -> Any:
    def turn(carry: Any, position: jax.Array) -> tuple[Any, None]:
        cache, x = carry
        q, k, v = (jnp.einsum("bd,dhk->bhk", x, params[name]) for name in "qkv")
        keys = lax.dynamic_update_slice(cache["keys"], k[:, None], (0, position, 0, 0))
        values = lax.dynamic_update_slice(cache["values"], v[:, None], (0, position, 0, 0))
        read, held = P("data", None, "model"), P("data", "model")
        scores = jnp.einsum("bhk,bthk->bht", q, lax.with_sharding_constraint(keys, read))
        attended = jnp.einsum("bht,bthk->bhk", scores, lax.with_sharding_constraint(values, read))
        kept = [lax.with_sharding_constraint(each, held) for each in (keys, values)]  # mistake
        x = x + jnp.einsum("bhk,hkd->bd", attended, params["out"])
        return ({"keys": kept[0], "values": kept[1]}, x), None

    return lax.scan(turn, (cache, x), jnp.arange(64))[0]


MISTAKES: dict[str, Mistake] = {
    "a cache that is constrained to positions and read by heads": Mistake(
        "carry-changes-layout",
        replace(
            generating(P("data", None, "model"), HEADS, P("model"), P("data")),
            function=generate_constrained,
            mesh={"data": 4, "model": 2},
        ),
        at=generate_constrained,
        has_cure=False,
    ),
    "a cache of keys and values in two arguments": Mistake(
        "replicated-tensor",
        Written(
            decode_apart,
            (
                *[tensor(32, 4096, 32, 128, split=P())] * 2,
                tensor(32, 4096, split=P("data")),
                tensor(dtype="int32"),
                {name: tensor(4096, 32, 128, split=P(None, "model")) for name in "qkv"},
            ),
        ),
        "keys",
    ),
    "a cache whose keys and values are large together": Mistake(
        "replicated-tensor",
        Written(
            decode_apart,
            (
                *[tensor(16, 768, 32, 128, split=P())] * 2,
                tensor(16, 4096, split=P("data")),
                tensor(dtype="int32"),
                {name: tensor(4096, 32, 128, split=HEADS) for name in "qkv"},
            ),
        ),
        "keys",
    ),
    "a cache split by the size of the heads, in a loop": Mistake(
        "sum-over-sharded-state",
        generating(P(None, None, None, "data"), P(None, None, "data"), P(None, "data"), P()),
        "cache['keys']",
    ),
    "a cache split by the size of the heads, in one step": Mistake(
        "sum-over-sharded-state",
        decoding(P("data", None, None, "model"), P(None, None, "model"), 256),
        "cache['keys']",
    ),
    "weights split over the axis of the batch, layers in a loop": Mistake(
        "sum-over-sharded-operand", replace(good.generating(good.FULLY), mesh=EIGHT), "stacked[2]"
    ),
    "a state split by its columns": Mistake("avoidable-reshard", recurring(P("data", None, None, "model")), "state"),
    "a state split by its rows": Mistake("sum-over-sharded-operand", recurring(P("data", None, "model")), "state"),
    "a replicated cache": Mistake("sliced-argument", decoding(P()), "cache['keys']", needs_names=True),
}
