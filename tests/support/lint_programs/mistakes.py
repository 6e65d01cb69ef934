"""Programs with one planted mistake each, which lint finds once, by its line or by the path of an argument."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import MISTAKE, Planted, Written, tensor

EIGHT = {"data": 8}
constrained = lax.with_sharding_constraint


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake: at a marked line, or in the sharding of the argument of a path."""

    rule: str
    written: Written
    argument: str = ""
    at: Callable[..., Any] | None = None
    has_cure: bool = True

    @property
    def cause(self) -> str:
        """The text that a finding contains: the path, or the file and the line."""
        if self.argument:
            return f"({self.argument})"
        _, line = Planted("", "", self.written, self.written, self.at).line()
        return f"mistakes.py:{line}"


def descend(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """Return a step of gradient descent."""

    def step(params: Any, *batch: jax.Array) -> Any:
        gradients = jax.grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g.astype(p.dtype), params, gradients)

    return step


# Constraints and out_shardings that replicate what was sharded.


def replicated_activation(x: jax.Array, w: jax.Array) -> jax.Array:
    h = constrained(jnp.tanh(x @ w), P())  # mistake
    return h @ w


def replicated_in_loss(params: Any, x: jax.Array) -> jax.Array:
    h = jnp.tanh(x @ params["up"])
    h = constrained(h, P(None, "model"))  # mistake
    return jnp.mean((h @ params["down"]) ** 2)


def replicated_logits(x: jax.Array, w: jax.Array, labels: jax.Array) -> jax.Array:
    logits = constrained(x @ w, P())  # mistake
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


def replicated_under_vmap(x: jax.Array, w: jax.Array) -> jax.Array:
    def one(x: jax.Array, w: jax.Array) -> jax.Array:
        return constrained(jnp.tanh(x @ w), P(None, None)) @ w.T  # mistake

    return jax.vmap(one)(x, w)


def replicated_images(images: jax.Array, kernel: jax.Array) -> jax.Array:
    def convolved(x: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME")

    h = constrained(jax.nn.relu(convolved(images)), P())  # mistake
    return convolved(h).mean((2, 3))


# shard_map.


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


def mapped_with_gather(x: jax.Array, w: jax.Array) -> jax.Array:
    def local(x: jax.Array) -> jax.Array:
        return lax.all_gather(jnp.tanh(x), "data", tiled=True)

    y = jax.shard_map(local, in_specs=P("data"), out_specs=P(), check_vma=False)(x)  # mistake
    return constrained(y, P("data")) @ w


# Layers that differ from their siblings.


def layers_loss(params: Any, x: jax.Array) -> jax.Array:
    for layer in params:
        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
    return jnp.mean(x**2)


def layers(odd: dict[str, P], number: int = 2, count: int = 4) -> list[dict[str, Any]]:
    usual = {"up": P("data", "model"), "down": P("model", "data")}
    shapes = {"up": (1024, 4096), "down": (4096, 1024)}
    return [
        {
            name: tensor(*shapes[name], split=(odd if index == number else usual).get(name, usual[name]))
            for name in usual
        }
        for index in range(count)
    ]


# Batches that are not sharded over an axis.


def mlp_loss(params: Any, x: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)


def mlp(up: P, down: P) -> dict[str, Any]:
    return {"up": tensor(1024, 8192, split=up), "down": tensor(8192, 1024, split=down)}


def infer(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w) @ w.T


def token_loss(params: Any, batch: Any) -> jax.Array:
    x = params["table"][batch["tokens"]]
    logits = jnp.tanh(x @ params["up"]) @ params["out"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["labels"][..., None], -1)
    return -chosen.mean()


def token_params() -> dict[str, Any]:
    return {
        "table": tensor(8192, 512, split=P("model")),
        "up": tensor(512, 2048, split=P(None, "model")),
        "out": tensor(2048, 8192, split=P("model")),
    }


def image_loss(kernels: Any, images: jax.Array) -> jax.Array:
    for kernel in kernels:
        images = jax.nn.relu(lax.conv_general_dilated(images, kernel, (1, 1), "SAME"))
    return jnp.mean(images**2)


# Loops over a dimension that is sharded.


def microbatches(w: jax.Array, batch: jax.Array) -> jax.Array:
    def add(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w), None

    parts = batch.reshape(8, -1, batch.shape[1])  # mistake
    return lax.scan(add, jnp.zeros_like(w), parts)[0]


def over_pairs(params: Any, x: jax.Array) -> Any:
    def layer(x: jax.Array, each: Any) -> tuple[jax.Array, None]:
        return x + jnp.tanh(x @ each["up"]) @ each["down"], None

    def loss(params: Any) -> jax.Array:
        return jnp.mean(lax.scan(layer, x, params)[0] ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def over_layers(ws: jax.Array, x: jax.Array) -> jax.Array:
    return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]


def layers_mean(ws: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean(over_layers(ws, x) ** 2)


def over_time(w: jax.Array, xs: jax.Array) -> jax.Array:
    def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jnp.tanh(h @ w + x)
        return h, h

    return lax.scan(cell, jnp.zeros_like(xs[0]), xs)[1]


def over_time_loss(params: Any, xs: jax.Array) -> jax.Array:
    return jnp.mean(over_time(params["w"], jnp.transpose(xs @ params["in"], (1, 0, 2))) ** 2)


def over_chunks(x: jax.Array, w: jax.Array) -> jax.Array:
    def one(index: int, total: jax.Array) -> jax.Array:
        part = lax.dynamic_slice_in_dim(x, index * 512, 512, 0)
        return total + part.T @ part @ w

    return lax.fori_loop(0, 16, one, jnp.zeros((1024, 1024)))


def nested_loops(ws: jax.Array, xs: jax.Array) -> jax.Array:
    def outer(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + over_layers(ws, x), None

    return lax.scan(outer, jnp.zeros_like(xs[0]), xs)[0]


# State of loops and of decoding.


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


def decoding(spec: P) -> Written:
    params = {name: tensor(1024, 8, 128, split=P(None, "model")) for name in "qkv"}
    cache = {name: tensor(16, 1024, 8, 128, split=spec) for name in ("keys", "values")}
    arguments = params, cache, tensor(16, 1024, split=P("data")), tensor(dtype="int32")
    return Written(decode, arguments, donated=(1,))


def carry_back_and_forth(x: jax.Array, w: jax.Array) -> jax.Array:
    def turn(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        x = constrained(x, P("data", None))
        return constrained(jnp.tanh(x @ w), P(None, "model")), None  # mistake

    return lax.scan(turn, x, None, length=16)[0]


def carry_until(x: jax.Array, w: jax.Array) -> jax.Array:
    def turn(x: jax.Array) -> jax.Array:
        x = constrained(x, P("data", None))
        return constrained(jnp.tanh(x * w), P(None, "data"))  # mistake

    return lax.while_loop(lambda x: jnp.sum(x) > 1, turn, x)


# Casts.


def cast_down(x: jax.Array, w: jax.Array) -> jax.Array:
    whole = constrained(w, P())
    return x @ whole.astype("bfloat16")  # mistake


def cast_down_transposed(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ constrained(w, P()).T.astype("bfloat16")  # mistake


def cast_up(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ constrained(w.astype("float32"), P())  # mistake


def cast_down_loss(params: Any, x: jax.Array) -> jax.Array:
    def gathered(w: jax.Array) -> jax.Array:
        return constrained(w, P()).astype("bfloat16")  # mistake

    return jnp.mean((jnp.tanh(x @ gathered(params["up"])) @ gathered(params["down"])).astype("float32") ** 2)


# Many small collectives.


def many_gathers(scales: list[jax.Array], x: jax.Array) -> jax.Array:
    for scale in scales:
        x = jnp.tanh(x * scale)  # mistake
    return x


# State of optimizers.


def momentum(params: Any, state: Any, x: jax.Array) -> Any:
    gradients = jax.grad(layers_loss)(params, x)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


def decode_apart(keys: Any, values: Any, x: jax.Array, position: jax.Array, params: Any) -> Any:
    cache, attended = decode(params, {"keys": keys, "values": values}, x, position)
    return cache["keys"], cache["values"], attended


def attend_in_parts(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(q @ k.swapaxes(-1, -2)) @ v

    split = P("data", "model")
    return jax.shard_map(local, in_specs=(split, P("data"), P("data")), out_specs=split)(q, k, v)  # mistake


def replicated_before_product(params: Any, x: jax.Array) -> jax.Array:
    h = constrained(jax.nn.gelu(x @ params["up"]), P())  # mistake
    return h @ params["down"]


DATA = tensor(8192, 1024, split=P("data"))
SQUARE = tensor(4096, 4096, split=P(None, "model"))

MISTAKES: dict[str, Mistake] = {
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
    "shard_map with all keys, whose scores are large": Mistake(
        "manual-computation-gathers",
        Written(attend_in_parts, (tensor(16, 8192, 256, split=P("data", "model")),) * 3),
        has_cure=False,
    ),
    "a constraint whose removal costs as little as another one": Mistake(
        "costly-constraint",
        Written(
            replicated_before_product,
            (
                {"up": tensor(2048, 8192, split=P(None, "model")), "down": tensor(8192, 2048, split=P("model"))},
                tensor(16384, 2048, split=P("data")),
            ),
        ),
    ),
    "an activation that is replicated": Mistake(
        "costly-constraint", Written(replicated_activation, (tensor(8192, 4096, split=P("data")), SQUARE))
    ),
    "a batch axis that a constraint forgets": Mistake(
        "costly-constraint",
        Written(descend(replicated_in_loss), (mlp(P(None, "model"), P("model")), DATA)),
        at=replicated_in_loss,
    ),
    "logits that are replicated": Mistake(
        "costly-constraint",
        Written(
            replicated_logits,
            (DATA, tensor(1024, 8192, split=P(None, "model")), tensor(8192, split=P("data"), dtype="int32")),
        ),
    ),
    "a replicating constraint under vmap": Mistake(
        "costly-constraint",
        Written(
            replicated_under_vmap,
            (tensor(4, 4096, 1024, split=P(None, "data")), tensor(4, 1024, 1024)),
            mesh=EIGHT,
        ),
    ),
    "images that are replicated": Mistake(
        "costly-constraint",
        Written(replicated_images, (tensor(64, 32, 64, 64, split=P("data")), tensor(32, 32, 3, 3)), mesh=EIGHT),
    ),
    "parameters that come out replicated": Mistake(
        "state-changes-layout",
        Written(
            descend(mlp_loss),
            (mlp(P("data"), P(None, "data")), DATA),
            results={"up": P(), "down": P(None, "data")},
            mesh=EIGHT,
        ),
        "params['up']",
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
    "shard_map whose result is gathered": Mistake(
        "manual-computation-returns-whole", Written(mapped_with_gather, (DATA, tensor(1024, 1024)), mesh=EIGHT)
    ),
    "a layer that is replicated": Mistake(
        "siblings-differ", Written(descend(layers_loss), (layers({"up": P(), "down": P()}), DATA)), "params[2]['up']"
    ),
    "a weight with its axes exchanged": Mistake(
        "siblings-differ", Written(descend(layers_loss), (layers({"up": P("model", "data")}), DATA)), "params[2]['up']"
    ),
    "a weight that lacks an axis": Mistake(
        "siblings-differ",
        Written(descend(layers_loss), (layers({"down": P("model")}, 0, 3), DATA)),
        "params[0]['down']",
    ),
    "a batch on every device": Mistake(
        "batch-not-sharded",
        Written(descend(mlp_loss), (mlp(P(None, "model"), P("model")), tensor(8192, 1024, split=P()))),
        "batch[0]",
    ),
    "tokens on every device": Mistake(
        "batch-not-sharded",
        Written(
            descend(token_loss),
            (token_params(), {name: tensor(32, 256, split=P(), dtype="int32") for name in ("tokens", "labels")}),
        ),
        "batch[0]['tokens']",
    ),
    "a batch on half of the devices": Mistake(
        "batch-not-sharded", Written(descend(mlp_loss), (mlp(P(), P()), DATA)), "batch[0]"
    ),
    "images on every device": Mistake(
        "batch-not-sharded",
        Written(
            descend(image_loss),
            ([tensor(32, 32, 3, 3, split=P("model"))] * 3, tensor(64, 32, 64, 64, split=P())),
        ),
        "batch[0]",
    ),
    "inference on a replicated batch": Mistake(
        "batch-not-sharded",
        Written(
            infer,
            (tensor(8192, 1024, split=P()), tensor(1024, 4096, split=P(None, "model"))),
        ),
        "x",
    ),
    "a batch on every device, fully sharded parameters": Mistake(
        "batch-not-sharded",
        Written(descend(mlp_loss), (mlp(P("data"), P("data")), tensor(65536, 1024, split=P())), mesh=EIGHT),
        "batch[0]",
    ),
    "microbatches of a sharded batch": Mistake(
        "loop-over-sharded-dimension",
        Written(microbatches, (tensor(1024, 1024), tensor(32768, 1024, split=P("data"))), mesh=EIGHT),
    ),
    "stacked layers sharded by layer": Mistake(
        "loop-over-sharded-dimension",
        Written(
            over_layers, (tensor(16, 2048, 2048, split=P("data")), tensor(2048, 2048, split=P("data"))), mesh=EIGHT
        ),
        "ws",
    ),
    "two stacks of layers sharded by layer": Mistake(
        "loop-over-sharded-dimension",
        Written(
            over_pairs,
            (
                {"up": tensor(16, 1024, 4096, split=P("data")), "down": tensor(16, 4096, 1024, split=P("data"))},
                tensor(8192, 1024, split=P("data")),
            ),
            mesh=EIGHT,
        ),
        "params['down']",
    ),
    "layers sharded by layer, their gradients": Mistake(
        "loop-over-sharded-dimension",
        Written(
            descend(layers_mean),
            (tensor(16, 1024, 1024, split=P("data")), DATA),
            mesh=EIGHT,
        ),
        "params",
    ),
    "a recurrence over a sharded sequence": Mistake(
        "loop-over-sharded-dimension",
        Written(over_time, (tensor(1024, 1024), tensor(512, 64, 1024, split=P("data"))), mesh=EIGHT),
        "xs",
    ),
    "gradients of a recurrence over a sharded sequence": Mistake(
        "loop-over-sharded-dimension",
        Written(
            descend(over_time_loss),
            ({"w": tensor(512, 512), "in": tensor(512, 512)}, tensor(64, 512, 512, split=P(None, "data"))),
            mesh=EIGHT,
        ),
        "batch[0]",
    ),
    "chunks of sharded rows": Mistake(
        "loop-over-sharded-dimension",
        Written(over_chunks, (tensor(8192, 1024, split=P("data")), tensor(1024, 1024)), mesh=EIGHT),
        "x",
    ),
    "layers sharded by layer in two loops": Mistake(
        "loop-over-sharded-dimension",
        Written(
            nested_loops,
            (tensor(8, 1024, 1024, split=P("data")), tensor(4, 4096, 1024, split=P(None, "data"))),
            mesh=EIGHT,
        ),
        "ws",
    ),
    "a state split by its columns": Mistake("avoidable-reshard", recurring(P("data", None, None, "model")), "state"),
    "a state split by its rows": Mistake("conflict-by-order", recurring(P("data", None, "model")), "state"),
    "a replicated cache": Mistake("donated-not-reused", decoding(P()), "cache['keys']"),
    "a carry that goes to and fro": Mistake(
        "carry-changes-layout",
        Written(carry_back_and_forth, (tensor(4096, 4096, split=P("data")), SQUARE)),
        at=carry_back_and_forth,
        has_cure=False,
    ),
    "a carry of an unknown number of turns": Mistake(
        "carry-changes-layout",
        Written(carry_until, (tensor(4096, 4096, split=P("data")), tensor(4096)), mesh=EIGHT),
        at=carry_until,
        has_cure=False,
    ),
    "a gather before a cast": Mistake(
        "late-cast",
        Written(
            cast_down,
            (tensor(8192, 4096, split=P("data"), dtype="bfloat16"), tensor(4096, 4096, split=P("data"))),
            mesh=EIGHT,
        ),
    ),
    "a gather before a transpose and a cast": Mistake(
        "late-cast",
        Written(
            cast_down_transposed,
            (tensor(8192, 1024, split=P("data"), dtype="bfloat16"), tensor(4096, 1024, split=P("data"))),
            mesh=EIGHT,
        ),
    ),
    "a gather after a cast": Mistake(
        "late-cast",
        Written(cast_up, (DATA, tensor(1024, 4096, split=P("data"), dtype="int8")), mesh=EIGHT),
    ),
    "gathers before casts, with gradients": Mistake(
        "costly-constraint",
        Written(
            descend(cast_down_loss),
            (mlp(P("data"), P("data")), tensor(8192, 1024, split=P("data"), dtype="bfloat16")),
            mesh=EIGHT,
        ),
        at=cast_down_loss,
    ),
    "hundreds of sharded scales": Mistake(
        "many-small-collectives",
        Written(many_gathers, ([tensor(1024, split=P("data"))] * 160, DATA), mesh=EIGHT),
        has_cure=False,
    ),
    "momentum on every device": Mistake(
        "optimizer-state",
        Written(
            momentum,
            (
                layers({}),
                [{name: tensor(*shape, split=P()) for name, shape in (("up", (1024, 4096)), ("down", (4096, 1024)))}]
                * 4,
                DATA,
            ),
        ),
        "state[0]['up']",
    ),
    "momentum without an axis": Mistake(
        "siblings-differ",
        Written(momentum, (layers({}), layers({"up": P("data"), "down": P("model")}, 2, 4), DATA)),
        "state[2]['up']",
    ),
}
"""The programs by name."""
assert MISTAKE
