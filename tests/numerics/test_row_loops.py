"""Devices leave a loop when their own rows have ended, if the results are those of rows that wait for all others."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from xdsl.dialects.builtin import ModuleOp

from partitioned_programs import D, Program, assert_same_as_whole, constrain, ints, partitioned
from samples import covering
from sdy.ir.walking import operations_of
from sdy.passes.communication.end_row_loops import num_row_loops
from sdy.stablehlo import AllReduceOp, WhileOp

ROWS = (8, 10, 13, 3)
"""Four devices have two rows each; or the last devices have padding; or one device has only padding."""

LIMIT = 99

Loop = Callable[[jax.Array], object]
"""A loop over the rows of a matrix."""


def active(x: jax.Array) -> jax.Array:
    return x.sum(1) < LIMIT


def grow(x: jax.Array) -> jax.Array:
    return x * 2 + 1


def until_all_ended(
    step: Callable[[jax.Array, jax.Array], jax.Array], rows: Callable[[jax.Array], jax.Array] = active
) -> Callable[[jax.Array], jax.Array]:
    """Return a loop of at most 8 steps, while any of `rows` is active; `step` gets `x` and a column of them."""

    def loop(x: jax.Array) -> jax.Array:
        return lax.while_loop(
            lambda carry: rows(carry[1]).any() & (carry[0] < 8),
            lambda carry: (carry[0] + 1, step(carry[1], rows(carry[1])[:, None])),
            (0, x),
        )[1]

    return loop


def vectorized(x: jax.Array) -> jax.Array:
    return jax.vmap(lambda row: lax.while_loop(lambda row: row.sum() < LIMIT, grow, row))(x)


def vectorized_with_counts(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    def one(row: jax.Array) -> tuple[jax.Array, jax.Array]:
        return lax.while_loop(
            lambda carry: (carry[1].sum() < LIMIT) & (carry[0] < 4), lambda c: (c[0] + 1, grow(c[1])), (0, row)
        )

    return jax.vmap(one)(x)


def vectorized_in_turn(x: jax.Array) -> jax.Array:
    def one(row: jax.Array) -> jax.Array:
        def inner(row: jax.Array) -> jax.Array:
            return lax.while_loop(lambda row: row.max() % 8 != 7, lambda row: row + 1, row)

        return lax.while_loop(lambda row: row.sum() < LIMIT, lambda row: inner(grow(row)) + 1, row)

    return jax.vmap(one)(x)


def bisected(x: jax.Array) -> jax.Array:
    """Find the square root of the first element of each row by bisection, with different tolerances."""

    def one(row: jax.Array) -> jax.Array:
        target, tolerance = row[0] + 1.0, 1.0 / (1 << row[1])

        def halve(ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            middle = (ends[0] + ends[1]) / 2
            return lax.cond(middle * middle < target, lambda: (middle, ends[1]), lambda: (ends[0], middle))

        return lax.while_loop(lambda ends: ends[1] - ends[0] > tolerance, halve, (jnp.float32(0), target))[0]

    return jax.vmap(one)(x)


def drawn(x: jax.Array) -> jax.Array:
    """Draw numbers for each row, with a key of its own, until one is large enough."""

    def one(row: jax.Array) -> jax.Array:
        def draw(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, drawn = jax.random.split(carry[0])
            return key, jax.random.randint(drawn, (), 0, 10)

        return lax.while_loop(lambda carry: carry[1] < row[0], draw, (jax.random.key(row[1]), jnp.int32(0)))[1]

    return jax.vmap(one)(x)


def flagged(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Iterate until all rows have a flag, which once set stays so."""

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, done = carry
        x = jnp.where(done[:, None], x, grow(x))
        return x, done | ~active(x)

    return lax.while_loop(lambda carry: ~carry[1].all(), step, (x, ~active(x)))


def counted(x: jax.Array) -> jax.Array:
    """Iterate while any row is active, at most four times: the count is the same on all devices."""

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, x = carry
        return count + 1, jnp.where(active(x)[:, None], grow(x) + count, x)

    return lax.while_loop(lambda carry: active(carry[1]).any() & (carry[0] < 4), step, (0, x))[1]


def carrying_activity(
    activity: Callable[[jax.Array, jax.Array, jax.Array], jax.Array] = lambda active, new, old: active & (new < LIMIT),
    step: Callable[[jax.Array, jax.Array, jax.Array], jax.Array] = jnp.where,
    begin: Callable[[jax.Array], jax.Array] = lambda t: t < LIMIT,
) -> Loop:
    """Return a loop that carries which rows are active, as those of diffrax do, and tests their times."""

    def loop(x: jax.Array) -> object:
        def iteration(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            count, active, t, x = carry
            new = t * 2 + 1
            x = jnp.where(active[:, None], x + t[:, None], x)
            return count + 1, activity(active, new, t), step(active, new, t), x

        def is_active(carry: tuple[jax.Array, ...]) -> jax.Array:
            return (carry[2] < LIMIT).any() & (carry[0] < 9)

        t = x.sum(1)
        return lax.while_loop(is_active, iteration, (0, begin(t), t, x))[2:]

    return loop


def from_one_time(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Begin at the same time in all rows, with steps of different length."""
    begin, end = jnp.float32(0), jnp.float32(1)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        active, t, x = carry
        later = t + 1 / (2 + x[:, 0])
        new = jnp.where(later < end, later, end)
        return active & (new < end), jnp.where(active, new, t), jnp.where(active[:, None], x + 1, x)

    rows = constrain(jnp.broadcast_to(begin, len(x)), D)
    active = constrain(jnp.broadcast_to(begin < end, len(x)), D)
    return lax.while_loop(lambda carry: (carry[1] < end).any(), step, (active, rows, x))[1:]


def matrix_products(x: jax.Array) -> jax.Array:
    weights = jnp.arange(9).reshape(3, 3) % 2
    return until_all_ended(lambda x, rows: jnp.where(rows, x @ weights + 1, x))(x)


ENDS: dict[str, Loop] = {
    "a vectorized loop": vectorized,
    "one with a count for each row": vectorized_with_counts,
    "one in another": vectorized_in_turn,
    "bisection": bisected,
    "random numbers": drawn,
    "flags": flagged,
    "a common count": counted,
    "products": matrix_products,
    "carried activity": carrying_activity(),
    "carried activity, and more": carrying_activity(lambda active, new, old: (new < LIMIT) & (old < 30) & active),
    "carried activity from one time": from_one_time,
}
"""Loops that each device ends alone."""


def counted_and_returned(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, x = carry
        return count + 1, jnp.where(active(x)[:, None], grow(x), x)

    return lax.while_loop(lambda carry: active(carry[1]).any(), step, (0, x))


def with_history(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Keep the rows of each iteration, those that have ended too."""

    def step(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        count, x, history = carry
        x = jnp.where(active(x)[:, None], grow(x), x)
        return count + 1, x, history.at[:, count].set(x[:, 0])

    history = constrain(jnp.zeros((len(x), 9), jnp.int32), D)
    return lax.while_loop(lambda carry: active(carry[1]).any(), step, (0, x, history))[1:]


def flags_that_fall(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Iterate until all rows are done, though a done row may be active again in the next iteration."""

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, done = carry
        return jnp.where(done[:, None], x, x + 1), (x.sum(1) > LIMIT) | ~done & (x[:, 0] % 4 == 0)

    return lax.while_loop(lambda carry: ~carry[1].all(), step, (x, ~active(x)))


def one_key(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draw from one key for all rows, and return it."""

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        key, x = carry
        key, drawn = jax.random.split(key)
        added = constrain(jax.random.randint(drawn, x.shape, 0, 10), D)
        return key, jnp.where(active(x)[:, None], x + added, x)

    key, x = lax.while_loop(lambda carry: active(carry[1]).any(), step, (jax.random.key(0), x))
    return jax.random.key_data(key), x


def by_count(x: jax.Array) -> jax.Array:
    """Iterate while any row is active, which depends on the count: rows pause."""

    def rows(count: jax.Array, x: jax.Array) -> jax.Array:
        return active(x) & ((count + x[:, 0]) % 3 != 0)

    def step(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, x = carry
        return count + 1, jnp.where(rows(count, x)[:, None], x * 3 + 1, x)

    return lax.while_loop(lambda carry: rows(*carry).any(), step, (0, x))[1]


def of_some_rows(x: jax.Array) -> jax.Array:
    """Iterate while the first rows are active; the others change meanwhile."""
    first = jnp.arange(len(x)) < len(x) - 2

    def step(x: jax.Array) -> jax.Array:
        return jnp.where(active(x)[:, None], grow(x), x)

    return lax.while_loop(lambda x: jnp.where(first, active(x), False).any(), step, x)


def on_each_device(x: jax.Array) -> jax.Array:
    """Keep all rows on each device, and test a part of them."""

    def rows(x: jax.Array) -> jax.Array:
        return constrain(active(x), None)

    def step(x: jax.Array) -> jax.Array:
        return constrain(jnp.where(rows(x)[:, None], grow(x), x), None)

    return lax.while_loop(lambda x: constrain(rows(x), D).any(), step, constrain(x, None))


KEEPS: dict[str, Loop] = {
    "a count that is returned": counted_and_returned,
    "a history": with_history,
    "flags that fall": flags_that_fall,
    "one key": one_key,
    "rows that pause": by_count,
    "some rows": of_some_rows,
    "rows on each device": on_each_device,
    "sums over rows": until_all_ended(lambda x, rows: jnp.where(rows, grow(x) + x.sum(0), x)),
    "the mean of rows": until_all_ended(lambda x, rows: jnp.where(rows, grow(x), x), lambda x: x[:, 0] < x.mean() + 9),
    "rolled rows": until_all_ended(lambda x, rows: jnp.where(rows, grow(jnp.roll(x, 1, 0)), x)),
    "rolled activity": until_all_ended(lambda x, rows: jnp.where(jnp.roll(rows, 1, 0), grow(x), x)),
    "ended rows change": until_all_ended(lambda x, rows: jnp.where(rows, grow(x), x + 1)),
    "reversed rows": until_all_ended(lambda x, rows: jnp.where(rows, grow(x), x[::-1])),
    "activity that begins too early": carrying_activity(begin=lambda t: t < 2 * LIMIT),
    "activity of the time before": carrying_activity(lambda active, new, old: active & (old < LIMIT)),
    "activity of another time": carrying_activity(lambda active, new, old: active & (new < LIMIT + 30)),
    "activity that returns": carrying_activity(lambda active, new, old: new % 4 < 3),
    "activity of a row or its neighbor": carrying_activity(
        lambda active, new, old: active & (jnp.roll(new, 1) < LIMIT)
    ),
    "activity of the inactive": carrying_activity(lambda active, new, old: ~active & (new < LIMIT)),
    "steps in inactive rows": carrying_activity(step=lambda active, new, old: jnp.where(active, new, old + 1)),
    "other steps than tested": carrying_activity(step=lambda active, new, old: jnp.where(active, new + 1, old)),
    "steps of neighbors": carrying_activity(step=lambda active, new, old: jnp.where(active, new[::-1], old)),
    "no selection": until_all_ended(lambda x, rows: grow(x)),
}
"""Loops that all devices have to end together."""


def sharded(function: Loop) -> Loop:
    return lambda x: function(constrain(x, D))


def reductions(local: ModuleOp) -> int:
    """Return the number of all-reduces in loops."""
    return sum(len(operations_of(loop, AllReduceOp)) for loop in operations_of(local, WhileOp))


@covering
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", ENDS)
def test_a_device_ends_with_its_own_rows(name: str, rows: int) -> None:
    original = Program(sharded(ENDS[name]), (ints((rows, 3)),)).module()
    local = partitioned(original)
    assert not operations_of(local, AllReduceOp)
    assert num_row_loops(local) >= 1
    assert_same_as_whole(original, local)


@covering
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", KEEPS)
def test_all_devices_end_together(name: str, rows: int) -> None:
    original = Program(sharded(KEEPS[name]), (ints((rows, 3)),)).module()
    local = partitioned(original)
    assert reductions(local)
    assert not num_row_loops(local)
    assert_same_as_whole(original, local)
