"""Parameters and state of optimizers that are sharded differently from their siblings."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, Mistake, constrained, descend, layers, layers_loss, mlp, mlp_loss
from lint_programs.planted import Written, tensor

ROWS = tensor(16384, 4096, split=P("data"))


def momentum(params: Any, state: Any, x: jax.Array) -> Any:
    gradients = jax.grad(layers_loss)(params, x)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


def statistics(factor: jax.Array, w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Update the curvature of a layer, and scale its weights by it."""
    factor = 0.9 * factor + 0.1 * x.T @ x / x.shape[0]
    return factor, w / jnp.sqrt(jnp.trace(factor))


def waves(before: jax.Array, now: jax.Array, speed: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(_: int, fields: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        before, now = fields
        neighbours = sum(jnp.roll(now, by, axis) for by in (1, -1) for axis in (0, 1))
        return now, 2 * now - before + speed * (neighbours - 4 * now)

    return jax.lax.fori_loop(0, 4, step, (before, now))


def adam(params: Any, mu: Any, nu: Any, x: jax.Array) -> Any:
    gradients = jax.grad(layers_loss)(params, x)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, gradients)
    nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, nu, gradients)
    return jax.tree.map(lambda p, m, v: p - 0.1 * m / (jnp.sqrt(v) + 1e-8), params, mu, nu), mu, nu


def parallel(up: P, down: P) -> list[dict[str, Any]]:
    """Return the parameters of layers with large weights."""
    return [{"up": tensor(2048, 8192, split=up), "down": tensor(8192, 2048, split=down)}] * 4


def rows_loss(params: Any, x: jax.Array) -> jax.Array:
    """Return a loss of fully sharded layers, whose activations are constrained to the batch's axis."""
    for layer in params:
        x = constrained(jax.nn.relu(constrained(x @ layer["weight"], P("data"))), P("data"))
    return jnp.mean(x**2)


def table_loss(params: Any, tokens: jax.Array) -> jax.Array:
    return jnp.mean((params["table"][tokens].mean(1) @ params["out"]) ** 2)


def momentum_of_table(params: Any, state: Any, tokens: jax.Array) -> Any:
    gradients = jax.grad(table_loss)(params, tokens)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


def average(params: Any, ema: Any, x: jax.Array) -> Any:
    params = descend(rows_loss)(params, x)
    return params, jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, ema, params)


def rows(**odd: P) -> list[dict[str, Any]]:
    """Return fully sharded parameters, some of them sharded otherwise."""
    return [{name: tensor(4096, 4096, split=odd.get(name, P("data"))) for name in ("weight", "out")}] * 3


def rows_of_two_loss(params: Any, x: jax.Array) -> jax.Array:
    for layer in params:
        x = constrained(jax.nn.relu(x @ layer["weight"]) @ layer["out"], P("data"))
    return jnp.mean(x**2)


def momentum_of_rows(params: Any, state: Any, x: jax.Array) -> Any:
    gradients = jax.grad(rows_of_two_loss)(params, x)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


def lookup_loss(params: Any, tokens: jax.Array) -> jax.Array:
    x = params["table"][tokens]
    for layer in params["layers"]:
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return jnp.mean((x @ params["head"]) ** 2)


def scores(params: Any, x: jax.Array) -> jax.Array:
    q, k = (jnp.einsum("bte,ehd->bthd", x, params[name]) for name in ("q", "k"))
    return jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))


def features(w1: jax.Array, w2: jax.Array, x: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ w1) @ w2


def head_loss(params: Any, x: jax.Array) -> jax.Array:
    hidden = jnp.tanh(jnp.tanh(x @ params["up"]) @ params["down"])
    return jnp.mean(jax.nn.log_softmax(hidden @ params["head"]) ** 2)


def momentum_of_head(params: Any, state: Any, x: jax.Array) -> Any:
    gradients = jax.grad(head_loss)(params, x)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


def outputs_first_loss(params: Any, x: jax.Array) -> jax.Array:
    """Return a loss of layers whose weights are stored as (out, in)."""
    for layer in params:
        x = x + jnp.tanh(x @ layer["up"].T) @ layer["down"].T
    return jnp.mean(x**2)


def outputs_first(up: P, down: P) -> list[dict[str, Any]]:
    return [{"up": tensor(4096, 1024, split=up), "down": tensor(1024, 4096, split=down)}] * 3


def averaged(params: Any, ema: Any, x: jax.Array) -> Any:
    def loss(params: Any) -> jax.Array:
        h = x
        for w in params:
            h = constrained(jnp.tanh(h @ w.astype("bfloat16")), P("data"))
        return jnp.mean(h**2)

    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))
    return params, jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, ema, params)


def members_loss(params: Any, x: jax.Array) -> jax.Array:
    """Return the loss of an ensemble, whose parameters have a leading dimension."""

    def one(params: Any) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)

    return jnp.sum(jax.vmap(one)(params))


def momentum_of_members(params: Any, state: Any, x: jax.Array) -> Any:
    gradients = jax.grad(members_loss)(params, x)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


MEMBERS = {"up": tensor(8, 256, 1024, split=P()), "down": tensor(8, 1024, 256, split=P())}


def mixture(params: Any, x: jax.Array) -> jax.Array:
    gate = jax.nn.softmax(x @ params["router"])
    rows = constrained(jnp.einsum("be,bd->ebd", gate, x), P("model", "data"))
    hidden = constrained(jax.nn.silu(jnp.einsum("ebd,edf->ebf", rows, params["up"])), P("model", "data"))
    return jnp.einsum("ebf,efd->bd", hidden, params["down"])


def outer_loss(params: Any, x: jax.Array) -> jax.Array:
    return layers_loss([*params["layers"], params["last"]], x)


MISTAKES: dict[str, Mistake] = {
    "members of an ensemble on every device": Mistake(
        "unused-axis",
        Written(descend(members_loss), (MEMBERS, tensor(4096, 256, split=P("data")))),
        "params['up']",
    ),
    "members of an ensemble on every device, with momentum": Mistake(
        "unused-axis",
        Written(momentum_of_members, (MEMBERS, MEMBERS, tensor(4096, 256, split=P("data"))), donated=(0, 1)),
        "params['down']",
    ),
    "experts split along the width of the model": Mistake(
        "sum-over-sharded-operand",
        Written(
            mixture,
            (
                {
                    "router": tensor(1024, 16, split=P()),
                    "up": tensor(16, 1024, 4096, split=P(None, "model", None)),
                    "down": tensor(16, 4096, 1024, split=P(None, None, "model")),
                },
                tensor(512, 1024, split=P("data")),
            ),
        ),
        "params['up']",
    ),
    "an average of weights that are cast": Mistake(
        "optimizer-state",
        Written(
            averaged,
            ([tensor(4096, 4096, split=P("data"))] * 4, [tensor(4096, 4096, split=P())] * 4, ROWS),
            donated=(0, 1),
            results=([P("data")] * 4, [P()] * 4),
            mesh=EIGHT,
        ),
        "ema[0]",
    ),
    "a replicated weight among fully sharded ones": Mistake(
        "replicated-parameter",
        Written(
            momentum_of_rows,
            (rows(out=P()), rows(out=P()), ROWS),
            donated=(0, 1),
            mesh=EIGHT,
        ),
        "params[0]['out']",
        needs_names=True,
    ),
    "momentum sharded along the other dimension": Mistake(
        "optimizer-state",
        Written(
            momentum_of_rows,
            (rows(), rows(weight=P(None, "data"), out=P(None, "data")), ROWS),
            donated=(0, 1),
            mesh=EIGHT,
        ),
        "state[0]['out']",
    ),
    "an average of the parameters on every device": Mistake(
        "optimizer-state",
        Written(
            average,
            (*[[{"weight": tensor(4096, 4096, split=split)}] * 4 for split in (P("data"), P())], ROWS),
            donated=(0, 1),
            mesh=EIGHT,
        ),
        "ema[0]['weight']",
    ),
    "activations that take the axis of a table": Mistake(
        "forgotten-constraint",
        Written(
            descend(lookup_loss),
            (
                {
                    "table": tensor(32768, 1024, split=P(None, "data")),
                    "layers": [mlp(P("data"), P(None, "data"))] * 3,
                    "head": tensor(1024, 4096, split=P("data")),
                },
                tensor(32, 512, split=P("data"), dtype="int32"),
            ),
            mesh=EIGHT,
        ),
        "params['table']",
        needs_names=True,
    ),
    "queries and keys sharded along the size of the heads": Mistake(
        "sum-over-sharded-operand",
        Written(
            scores,
            (
                {name: tensor(2048, 16, 128, split=P(None, None, "model")) for name in "qk"},
                tensor(16, 1024, 2048, split=P("data")),
            ),
        ),
        "params['k']",
    ),
    "features split in place of the batch": Mistake(
        "sum-over-sharded-operand",
        Written(
            features, (tensor(2048, 4096), tensor(4096, 1024), tensor(16384, 2048, split=P(None, "data"))), mesh=EIGHT
        ),
        "x",
    ),
    "a head split along the dimension that it contracts": Mistake(
        "sum-over-sharded-operand",
        Written(
            momentum_of_head,
            (
                *[
                    {
                        "up": tensor(1024, 4096, split=P(None, "model")),
                        "down": tensor(4096, 1024, split=P("model", None)),
                        "head": tensor(1024, 32768, split=P("model", None)),
                    }
                ]
                * 2,
                DATA,
            ),
            donated=(0, 1),
        ),
        "params['head']",
    ),
    "specs of weights that are stored with the outputs first": Mistake(
        "sum-over-sharded-operand",
        Written(descend(outputs_first_loss), (outputs_first(P(None, "model"), P("model", None)), DATA)),
        "params[1]['up']",
    ),
    "statistics of a batch on every device": Mistake(
        "sum-of-replicated-state",
        Written(
            statistics,
            (tensor(4096, 4096, split=P()), tensor(4096, 1024, split=P()), tensor(8192, 4096, split=P("data"))),
            donated=(0, 1),
            results=(P(), P()),
            mesh=EIGHT,
        ),
        "factor",
    ),
    "fields that come out split along the other dimension": Mistake(
        "state-changes-layout",
        Written(
            waves,
            (tensor(2048, 2048, split=P("data")),) * 3,
            donated=(0, 1),
            results=(P(None, "data"), P(None, "data")),
            mesh=EIGHT,
        ),
        "before",
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
    "a layer that is replicated": Mistake(
        "siblings-differ", Written(descend(layers_loss), (layers({"up": P(), "down": P()}), DATA)), "params[2]['up']"
    ),
    "a weight with its axes exchanged": Mistake(
        "siblings-differ", Written(descend(layers_loss), (layers({"up": P("model", "data")}), DATA)), "params[2]['up']"
    ),
    "a layer outside of the list with its axes exchanged": Mistake(
        "siblings-differ",
        Written(
            descend(outer_loss),
            ({"layers": layers({}), "last": layers({"up": P("model", "data")}, 0, 1)[0]}, DATA),
        ),
        "params['last']['up']",
    ),
    "a weight that lacks an axis": Mistake(
        "siblings-differ",
        Written(descend(layers_loss), (layers({"down": P("model")}, 0, 3), DATA)),
        "params[0]['down']",
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
    "a replicated layer among fully sharded ones": Mistake(
        "siblings-differ",
        Written(
            descend(rows_loss),
            (
                [{"weight": tensor(4096, 4096, split=P() if index == 3 else P("data"))} for index in range(5)],
                tensor(8192, 4096, split=P("data")),
            ),
            mesh=EIGHT,
        ),
        "params[3]['weight']",
    ),
    "both moments on every device, tensor-parallel parameters": Mistake(
        "optimizer-state",
        Written(
            adam,
            (
                parallel(P(None, "model"), P("model")),
                *[parallel(P(), P())] * 2,
                tensor(16384, 2048, split=P("data")),
            ),
        ),
        "mu[0]['up']",
    ),
    "momentum of a table on every device": Mistake(
        "optimizer-state",
        Written(
            momentum_of_table,
            (
                {"table": tensor(131072, 1024, split=P("model")), "out": tensor(1024, 4096, split=P(None, "model"))},
                {"table": tensor(131072, 1024, split=P()), "out": tensor(1024, 4096, split=P(None, "model"))},
                tensor(1024, 32, split=P("data"), dtype="int32"),
            ),
        ),
        "state['table']",
    ),
    "momentum without an axis": Mistake(
        "siblings-differ",
        Written(momentum, (layers({}), layers({"up": P("data"), "down": P("model")}, 2, 4), DATA)),
        "state[2]['up']",
    ),
}
