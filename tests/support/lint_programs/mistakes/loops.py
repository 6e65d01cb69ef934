"""Loops over a dimension that is sharded, and carries that change their layout."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.mistake import DATA, EIGHT, SQUARE, Mistake, constrained, descend
from lint_programs.planted import Written, tensor


def microbatches(w: jax.Array, batch: jax.Array) -> jax.Array:
    def add(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w), None

    parts = batch.reshape(8, -1, batch.shape[1])  # mistake
    return lax.scan(add, jnp.zeros_like(w), parts)[0]


def pairs_loss(params: Any, x: jax.Array) -> jax.Array:
    def layer(x: jax.Array, each: Any) -> tuple[jax.Array, None]:
        return x + jnp.tanh(x @ each["up"]) @ each["down"], None

    return jnp.mean(lax.scan(layer, x, params)[0] ** 2)


def momentum_of_pairs(params: Any, state: Any, x: jax.Array) -> Any:
    gradients = jax.grad(pairs_loss)(params, x)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, state), state


def hidden_moved(params: Any, x: jax.Array) -> jax.Array:
    """Apply layers whose hidden rows are moved from the batch to the time."""

    def layer(x: jax.Array, each: Any) -> tuple[jax.Array, None]:
        hidden = constrained(jnp.tanh(x @ each["up"]), P(None, "data"))  # mistake
        return x + hidden @ each["down"], None

    return jnp.mean(lax.scan(jax.checkpoint(layer), constrained(x, P("data")), params)[0] ** 2)


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


def roots(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the square roots of rows by Newton's method, and the most iterations that one took."""

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, x = carry
        return count + 1, jnp.where(abs(x * x - a) > 1e-6, (x + a / x) / 2, x)

    return lax.while_loop(lambda carry: (abs(carry[1] ** 2 - a) > 1e-6).any(), step, (0, a))  # mistake


def nested_loops(ws: jax.Array, xs: jax.Array) -> jax.Array:
    def outer(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + over_layers(ws, x), None

    return lax.scan(outer, jnp.zeros_like(xs[0]), xs)[0]


def advantages(params: Any, rollout: Any) -> jax.Array:
    """Estimate the advantages of a rollout backward in time, as proximal policy optimization does."""

    def back(following: Any, now: Any) -> tuple[Any, jax.Array]:
        advantage, next_value = following
        reward, value = now
        advantage = reward + 0.99 * next_value - value + 0.94 * advantage
        return (advantage, value), advantage

    values = (jnp.tanh(rollout["observation"] @ params["up"]) @ params["down"])[..., 0]
    start = jnp.zeros_like(values[0])
    return lax.scan(back, (start, start), (rollout["reward"], values), reverse=True)[1]


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


def members(ws: jax.Array, x: jax.Array) -> jax.Array:
    """Return the mean of the members of an ensemble, called in a loop of Python."""
    return sum((jnp.tanh(x @ ws[index]) for index in range(len(ws))), jnp.zeros(())) / len(ws)  # mistake


MISTAKES: dict[str, Mistake] = {
    "hidden layers that are split otherwise in each layer": Mistake(
        "carry-changes-layout",
        Written(
            descend(hidden_moved),
            ({"up": tensor(6, 512, 2048), "down": tensor(6, 2048, 512)}, tensor(32, 512, 512, split=P("data"))),
            mesh=EIGHT,
        ),
        at=hidden_moved,
    ),
    "members of an ensemble one by one": Mistake(
        "loop-over-sharded-dimension",
        Written(members, (tensor(8, 1024, 1024, split=P("data")), tensor(1024, 1024)), mesh=EIGHT),
        "ws",
    ),
    "rows that wait for the slowest one": Mistake(
        "loop-waits-for-rows", Written(roots, (tensor(4096, split=P("data")),), mesh=EIGHT), at=roots, has_cure=False
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
            descend(pairs_loss),
            (
                {"up": tensor(16, 1024, 4096, split=P("data")), "down": tensor(16, 4096, 1024, split=P("data"))},
                tensor(8192, 1024, split=P("data")),
            ),
            mesh=EIGHT,
        ),
        "params['down']",
    ),
    "two stacks of layers sharded by layer, with momentum": Mistake(
        "loop-over-sharded-dimension",
        Written(
            momentum_of_pairs,
            (
                *[{"up": tensor(16, 1024, 4096, split=P("data")), "down": tensor(16, 4096, 1024, split=P("data"))}] * 2,
                tensor(8192, 1024, split=P("data")),
            ),
            donated=(0, 1),
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
    "short rollouts sharded by time": Mistake(
        "loop-over-sharded-dimension",
        Written(
            advantages,
            (
                {"up": tensor(64, 256), "down": tensor(256, 1)},
                {"observation": tensor(128, 256, 64, split=P("data")), "reward": tensor(128, 256, split=P("data"))},
            ),
            mesh=EIGHT,
        ),
        "rollout['reward']",
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
}
