"""Steps of training and of inference with a mistake in one place, where the rest of the step hides its cost."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import EIGHT, Mistake, constrained, descend
from lint_programs.planted import Written, tensor

BATCH = tensor(16, 256, 1024, split=P("data"))
WIDE = {"data": 2, "model": 4}


def normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def blocks_loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    for number in range(4):
        h = jax.nn.gelu(normalized(x, params[f"norm_{number}"]) @ params[f"up_{number}"])
        x = x + h @ params[f"down_{number}"]
    return jnp.mean((x - y) ** 2)


def blocks() -> dict[str, Any]:
    """Return tensor-parallel layers, one split by rows, so that the activations before it are split as well."""
    names = {"norm": P(), "up": P(None, "model"), "down": P("model", None)}
    shapes = {"norm": (1024,), "up": (1024, 4096), "down": (4096, 1024)}
    params = {f"{name}_{at}": tensor(*shapes[name], split=split) for name, split in names.items() for at in range(4)}
    return params | {"up_2": tensor(1024, 4096, split=P("model", None))}


def rows_loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    for w in params:
        x = constrained(jnp.tanh(constrained(x @ w, P("data"))), P("data"))
    return jnp.mean((x - y) ** 2)


def towers_loss(params: Any, users: jax.Array, items: jax.Array) -> jax.Array:
    def embed(layers: Any, x: jax.Array) -> jax.Array:
        return jax.nn.relu(jax.nn.relu(x @ layers[0]) @ layers[1]) @ layers[2]

    logits = embed(params["user"], users) @ embed(params["item"], items).T
    return -jnp.mean(jnp.diag(jax.nn.log_softmax(logits)))


def descend_towers(params: Any, users: jax.Array, items: jax.Array) -> Any:
    return descend(towers_loss)(params, users, items)


def tower() -> list[Any]:
    return [tensor(*shape, split=P()) for shape in ((1024, 2048), (2048, 2048), (2048, 256))]


def generate(params: Any, cache: Any, x: jax.Array) -> Any:
    def turn(carry: Any, time: jax.Array) -> Any:
        x, keys, values = carry
        q, k, v = (jnp.einsum("bd,dhk->bhk", x, params[name]) for name in "qkv")
        keys, values = (
            lax.dynamic_update_slice_in_dim(cache, new[:, None], time, 1) for cache, new in ((keys, k), (values, v))
        )
        scores = jax.nn.softmax(jnp.einsum("bhk,bthk->bht", q, keys))
        attended = jnp.einsum("bht,bthk->bhk", scores, values)
        return (x + jnp.einsum("bhk,hkd->bd", attended, params["out"]), keys, values), x

    return lax.scan(turn, (x, cache["k"], cache["v"]), jnp.arange(64))


def language_loss(params: Any, x: jax.Array, targets: jax.Array) -> jax.Array:
    logits = jnp.tanh(x @ params["in"]) @ params["head"]
    logits = constrained(logits, P("data", None, None))  # mistake
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1))


def recur(params: Any, xs: jax.Array) -> jax.Array:
    def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jnp.tanh(x @ params["inp"] + h @ params["rec"])
        return h, h

    return lax.scan(cell, jnp.zeros((xs.shape[1], 2048)), xs)[1]


def small_layers(params: Any, x: jax.Array) -> jax.Array:
    for layer in params:
        x = x + jax.nn.gelu(normalized(x, layer["scale"]) @ layer["w"] + layer["b"])  # mistake
    return x


def advantages_loss(params: Any, roll: Any) -> jax.Array:
    hidden = jnp.tanh(roll["observations"] @ params["in"])
    values = (hidden @ params["value"])[..., 0]

    def add(carry: jax.Array, each: Any) -> tuple[jax.Array, jax.Array]:
        carry = each["reward"] - each["value"] + 0.9 * (1 - each["done"]) * carry
        return carry, carry

    steps = {"reward": roll["rewards"], "done": roll["dones"], "value": values}
    _, targets = lax.scan(add, jnp.zeros_like(values[0]), steps, reverse=True)
    return jnp.mean(jax.nn.log_softmax(hidden @ params["policy"])[..., 0] * lax.stop_gradient(targets))


def patches_loss(params: Any, images: jax.Array) -> jax.Array:
    x = jnp.einsum("bhpwqc,pqcd->bhwd", images.reshape(64, 16, 8, 16, 8, 3), params["patch"])
    x = constrained(jax.nn.gelu(x + 1.0).reshape(64, 256, 512), P(None, "data"))  # mistake
    for layer in params["layers"]:
        q, k, v = (jnp.einsum("bsd,dhe->bshe", x, layer[name]) for name in "qkv")
        weights = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k))
        x = x + jnp.einsum("bhqk,bkhe->bqhe", weights, v).reshape(x.shape)
    return jnp.mean(x**2)


VECTOR = tensor(256, split=P("data"))
ROLL = tensor(256, 4096, split=P("data"))

MISTAKES: dict[str, Mistake] = {
    "rows of one tensor-parallel layer, which save memory": Mistake(
        "siblings-differ", Written(descend(blocks_loss), (blocks(), BATCH, BATCH), mesh=WIDE), "params['up_2']"
    ),
    "one replicated layer of many, which save bytes": Mistake(
        "siblings-differ",
        Written(
            descend(rows_loss),
            (
                [tensor(2048, 2048, split=P() if number == 3 else P("data")) for number in range(6)],
                *[tensor(16384, 2048, split=P("data"))] * 2,
            ),
            mesh=EIGHT,
        ),
        "params[3]",
    ),
    "the batch of one of two towers": Mistake(
        "batch-not-sharded",
        Written(
            descend_towers,
            ({"user": tower(), "item": tower()}, tensor(4096, 1024, split=P("data")), tensor(4096, 1024, split=P())),
            mesh=EIGHT,
        ),
        "items",
    ),
    "a cache that is split with the batch alone, in a loop": Mistake(
        "sliced-argument",
        Written(
            generate,
            (
                {name: tensor(1024, 16, 64, split=P(None, "model")) for name in "qkv"}
                | {"out": tensor(16, 64, 1024, split=P("model"))},
                {name: tensor(16, 512, 16, 64, split=P("data")) for name in "kv"},
                tensor(16, 1024, split=P("data")),
            ),
            mesh=WIDE,
        ),
        "cache['k']",
    ),
    "logits without the axis of the vocabulary": Mistake(
        "costly-constraint",
        Written(
            descend(language_loss),
            (
                {"in": tensor(512, 512, split=P()), "head": tensor(512, 32000, split=P(None, "model"))},
                tensor(16, 128, 512, split=P("data")),
                tensor(16, 128, split=P("data"), dtype="int32"),
            ),
        ),
        at=language_loss,
    ),
    "recurrent weights split by rows": Mistake(
        "sum-over-sharded-state",
        Written(
            recur,
            (
                {"inp": tensor(512, 2048, split=P()), "rec": tensor(2048, 2048, split=P("model", None))},
                tensor(128, 128, 512, split=P(None, "data")),
            ),
        ),
        "params['rec']",
    ),
    "vectors of many layers": Mistake(
        "many-small-collectives",
        Written(
            small_layers,
            (
                [{"w": tensor(256, 256, split=P()), "scale": VECTOR, "b": VECTOR}] * 40,
                tensor(1024, 256, split=P("data")),
            ),
            mesh=EIGHT,
        ),
        at=small_layers,
    ),
    "patches of images that are split over the sequence": Mistake(
        "constraint-moves-batch",
        Written(
            descend(patches_loss),
            (
                {
                    "patch": tensor(8, 8, 3, 512, split=P()),
                    "layers": [{name: tensor(512, 8, 64, split=P()) for name in "qkv"}] * 2,
                },
                tensor(64, 128, 128, 3, split=P("data")),
            ),
            mesh=EIGHT,
        ),
        at=patches_loss,
        needs_names=True,
    ),
    "experience that is split over time": Mistake(
        "loop-over-sharded-dimension",
        Written(
            descend(advantages_loss),
            (
                {
                    name: tensor(*shape, split=P())
                    for name, shape in (("in", (64, 256)), ("value", (256, 1)), ("policy", (256, 8)))
                },
                {"observations": tensor(256, 4096, 64, split=P("data")), "rewards": ROLL, "dones": ROLL},
            ),
            mesh=EIGHT,
        ),
        "batch[0]['observations']",
    ),
}
