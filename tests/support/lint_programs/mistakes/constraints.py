"""Constraints and `out_specs` that replicate what was sharded, and casts on the wrong side of a gather."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, SQUARE, Mistake, constrained, descend, mlp
from lint_programs.planted import Written, tensor


def replicated_activation(x: jax.Array, w: jax.Array) -> jax.Array:
    h = constrained(jnp.tanh(x @ w), P())  # mistake
    return h @ w


def gathered_in_float32(params: Any, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, each: Any) -> tuple[jax.Array, None]:
        up = constrained(each["up"], P()).astype(jnp.bfloat16)  # mistake
        down = constrained(each["down"], P()).astype(jnp.bfloat16)
        return x + jax.nn.gelu(x @ up) @ down, None

    y, _ = lax.scan(jax.checkpoint(layer), x.astype(jnp.bfloat16), params)
    return jnp.mean(y.astype(jnp.float32) ** 2)


def noise_on_all_devices(params: Any, x: jax.Array, seed: jax.Array) -> jax.Array:
    noise = constrained(jax.random.normal(jax.random.wrap_key_data(seed), x.shape), P())  # mistake
    return jnp.mean((jax.nn.silu((x + noise) @ params["up"]) @ params["down"] - noise) ** 2)


def rows_between_convolutions(kernels: Any, x: jax.Array) -> jax.Array:
    for kernel in kernels:
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = constrained(jax.nn.silu(x), P(None, "data"))  # mistake
    return jnp.mean(x**2)


def keep(x: jax.Array, *spec: str | None) -> jax.Array:
    return constrained(x, P(*spec))


def replicated_by_helper(x: jax.Array, w: jax.Array) -> jax.Array:
    h = keep(jnp.tanh(keep(x, "data") @ w))  # mistake
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


def misplaced_scores(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) / 8
    scores = constrained(scores, P("data", None, "model"))  # mistake
    return jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(scores), v)


def whole_tokens(embed: jax.Array, up: jax.Array, tokens: jax.Array) -> jax.Array:
    parts = constrained(tokens.reshape(2, -1, tokens.shape[1]), P())  # mistake

    def add(total: jax.Array, part: jax.Array) -> tuple[jax.Array, None]:
        return total + jnp.sum(jnp.tanh(embed[part] @ up) ** 2), None

    return lax.scan(add, jnp.zeros(()), parts)[0]


def gathered_momentum(w: jax.Array, m: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
    m = 0.9 * m + g
    update = constrained(m, P())  # mistake
    for _ in range(3):
        update = 1.5 * update - 0.5 * update @ update.swapaxes(1, 2) @ update
    return w - 0.1 * update, m


def cast_down(x: jax.Array, w: jax.Array) -> jax.Array:
    whole = constrained(w, P())
    return x @ whole.astype("bfloat16")  # mistake


def cast_down_transposed(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ constrained(w, P()).T.astype("bfloat16")  # mistake


def cast_up(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ constrained(w.astype("float32"), P())  # mistake


def cast_up_layers(params: Any, x: jax.Array) -> jax.Array:
    def whole(w: jax.Array) -> jax.Array:
        wide = w.astype("float32") * 0.1  # mistake
        return constrained(wide, P())

    for layer in params:
        x = x + jnp.tanh(x @ whole(layer["up"])) @ whole(layer["down"])
    return x


def cast_down_loss(params: Any, x: jax.Array) -> jax.Array:
    def gathered(w: jax.Array) -> jax.Array:
        return constrained(w, P()).astype("bfloat16")  # mistake

    return jnp.mean((jnp.tanh(x @ gathered(params["up"])) @ gathered(params["down"])).astype("float32") ** 2)


def replicated_before_product(params: Any, x: jax.Array) -> jax.Array:
    h = constrained(jax.nn.gelu(x @ params["up"]), P())  # mistake
    return h @ params["down"]


def resharded_layer(params: Any, x: jax.Array) -> jax.Array:
    for number, w in enumerate(params):
        x = x @ jax.sharding.reshard(w, P(None, None))
        if number == 1:
            x = jax.sharding.reshard(x, P(None, None))  # mistake
        x = jax.nn.silu(x)
    return jnp.mean(jax.sharding.reshard(x, P("data", None)) ** 2)


def whole_out_sharding(params: Any, x: jax.Array) -> jax.Array:
    for number, layer in enumerate(params):
        if number == 1:
            h = jnp.einsum("td,df->tf", x, layer["up"], out_sharding=P("data", None))  # mistake
        else:
            h = jnp.einsum("td,df->tf", x, layer["up"], out_sharding=P("data", "model"))
        h = jax.sharding.reshard(jax.nn.gelu(h), P("data", "model"))
        x = x + jnp.einsum("tf,fd->td", h, layer["down"], out_sharding=P("data", None))
    return jnp.mean(x**2)


def features_of_batch(params: Any, tokens: jax.Array) -> jax.Array:
    x = params["embed"][tokens]  # mistake
    for up, down in params["layers"]:
        x = x + jax.nn.gelu(x @ up) @ down
    return jnp.mean((x @ params["embed"].T) ** 2)


def sampled(params: Any, key: jax.Array) -> jax.Array:
    x = jax.random.normal(key, (4096, 1024))  # mistake

    def turn(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return x + jnp.tanh(x @ params["up"]) @ params["down"], None

    return lax.scan(turn, x, None, length=16)[0]


def sampled_with_gathered_weights(params: Any, key: jax.Array) -> jax.Array:
    whole = {name: constrained(w, P()) for name, w in params.items()}
    positions = jnp.sin(jnp.arange(4096)[:, None] * jnp.arange(1024) / 1024)
    x = positions + jax.random.normal(key, (4096, 1024))  # mistake

    def turn(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return x + jnp.tanh(x @ whole["up"]) @ whole["down"], None

    return lax.scan(turn, x, None, length=16)[0]


LAYERS = [(tensor(1024, 4096, split=P("data", "model")), tensor(4096, 1024, split=P("model", "data")))] * 3

MISTAKES: dict[str, Mistake] = {
    "weights of layers that are gathered in float32 and cast": Mistake(
        "late-cast",
        Written(
            descend(gathered_in_float32),
            (
                {
                    "up": tensor(4, 1024, 4096, split=P(None, "data")),
                    "down": tensor(4, 4096, 1024, split=P(None, "data")),
                },
                tensor(64, 512, 1024, split=P("data")),
            ),
            mesh=EIGHT,
        ),
        at=gathered_in_float32,
    ),
    "noise that all devices compute": Mistake(
        "costly-constraint",
        Written(
            noise_on_all_devices,
            (
                {"up": tensor(1024, 4096), "down": tensor(4096, 1024)},
                tensor(65536, 1024, split=P("data")),
                tensor(2, split=P(), dtype="uint32"),
            ),
            mesh=EIGHT,
        ),
        at=noise_on_all_devices,
        needs_names=True,
    ),
    "rows of images that are sharded between convolutions": Mistake(
        "exchange-along-dimension",
        Written(
            descend(rows_between_convolutions),
            ([tensor(3, 3, 64, 64) for _ in range(4)], tensor(64, 64, 64, 64, split=P("data"))),
            mesh=EIGHT,
        ),
        at=rows_between_convolutions,
    ),
    "a reshard between layers, with explicit axes": Mistake(
        "costly-constraint",
        Written(
            descend(resharded_layer),
            ([tensor(2048, 2048, split=P("data", None))] * 4, tensor(32768, 2048, split=P("data", None))),
            mesh=EIGHT,
            axis_type=AxisType.Explicit,
        ),
        at=resharded_layer,
        needs_names=True,
    ),
    "an out_sharding that replicates, with explicit axes": Mistake(
        "costly-constraint",
        Written(
            descend(whole_out_sharding),
            (
                [{"up": tensor(1024, 4096, split=P(None, "model")), "down": tensor(4096, 1024, split=P("model", None))}]
                * 3,
                tensor(8192, 1024, split=P("data", None)),
            ),
            axis_type=AxisType.Explicit,
        ),
        at=whole_out_sharding,
        needs_names=True,
    ),
    "an embedding whose features have the axis of the batch": Mistake(
        "forgotten-constraint",
        Written(
            descend(features_of_batch),
            (
                {"embed": tensor(8192, 1024, split=P("model", "data")), "layers": LAYERS},
                tensor(16, 1024, split=P("data"), dtype="int32"),
            ),
        ),
        at=features_of_batch,
        needs_names=True,
    ),
    "noise that is drawn in a step": Mistake(
        "generated-not-sharded",
        Written(sampled, (mlp(P(), P()), tensor(2, split=P(), dtype="uint32")), mesh=EIGHT),
        needs_names=True,
    ),
    "noise that is drawn in a step of weights that are gathered": Mistake(
        "generated-not-sharded",
        Written(
            sampled_with_gathered_weights,
            (mlp(P(("data", "model")), P(("data", "model"))), tensor(2, split=P(), dtype="uint32")),
        ),
        needs_names=True,
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
    "an activation that a function of constraints replicates": Mistake(
        "costly-constraint", Written(replicated_by_helper, (tensor(8192, 4096, split=P("data")), SQUARE))
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
    "scores split along the queries, of queries and keys split by heads": Mistake(
        "misplaced-constraint",
        Written(misplaced_scores, (tensor(16, 512, 8, 64, split=P("data", None, "model")),) * 3),
    ),
    "microbatches of tokens that a constraint keeps whole": Mistake(
        "unused-axis",
        Written(
            whole_tokens,
            (tensor(8192, 1024), tensor(1024, 4096), tensor(64, 512, split=P("data"), dtype="int32")),
            mesh=EIGHT,
        ),
    ),
    "a momentum that is gathered whole before products of each layer": Mistake(
        "conflict-by-order",
        Written(
            gathered_momentum,
            (tensor(8, 1024, 1024, split=P(None, "data")),) * 3,
            donated=(0, 1),
            results=(P(None, "data"), P(None, "data")),
            mesh=EIGHT,
        ),
        "w",
    ),
    "images that are replicated": Mistake(
        "costly-constraint",
        Written(replicated_images, (tensor(64, 32, 64, 64, split=P("data")), tensor(32, 32, 3, 3)), mesh=EIGHT),
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
    "gathers after the casts of weights of several sizes": Mistake(
        "late-cast",
        Written(
            cast_up_layers,
            (
                [
                    {
                        "up": tensor(1024, 4096, split=P("data"), dtype="int8"),
                        "down": tensor(4096, 1024, split=P("data"), dtype="int8"),
                    }
                ]
                * 2,
                DATA,
            ),
            mesh=EIGHT,
        ),
    ),
    "gathers before casts, with gradients": Mistake(
        "costly-constraint",
        Written(
            descend(cast_down_loss),
            (mlp(P("data"), P("data")), tensor(8192, 1024, split=P("data"), dtype="bfloat16")),
            mesh=EIGHT,
        ),
        at=cast_down_loss,
        needs_names=True,
    ),
}
