"""Sums over devices that loops accumulate: one all-reduce after the loop, with the results of one device."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from samples import covering, sample
from sdy.ir.walking import operations_of
from sdy.passes.account.partitioned_program import partitioned_program
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.reducing_collectives import AllReduceOp

ROWS, WIDTH, TURNS = 16, 6, 4
Loop = Callable[[jax.Array], Any]


def gram(x: jax.Array) -> jax.Array:
    """Return a product of sharded rows, which is a sum over devices."""
    return x.T @ x


def scanned(step: Callable[[Any, jax.Array], Any], begin: Any = None) -> Loop:
    return lambda xs: lax.scan(step, jnp.zeros((WIDTH, WIDTH)) if begin is None else begin, xs)


def in_mixed_precision(xs: jax.Array) -> Any:
    return scanned(lambda total, x: (total + gram(x.astype(jnp.bfloat16)).astype(jnp.float32), None))(xs)


def of_gradients(xs: jax.Array) -> Any:
    w = jnp.ones((WIDTH, 3)) / 7

    def step(totals: Any, x: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return (totals[0] + value, totals[1] + gradient), None

    return lax.scan(step, (jnp.zeros(()), jnp.zeros_like(w)), xs)


def nested(xs: jax.Array) -> jax.Array:
    zeros = jnp.zeros((WIDTH, WIDTH))

    def outer(index: Any, total: jax.Array) -> jax.Array:
        return total + lax.fori_loop(0, 3, lambda turn, inner: inner + gram(xs[index] + turn), zeros)

    return lax.fori_loop(0, TURNS, outer, zeros)


def nested_in_one_total(xs: jax.Array) -> jax.Array:
    def outer(index: Any, total: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda turn, inner: inner + gram(xs[index] + turn), total)

    return lax.fori_loop(0, TURNS, outer, jnp.zeros((WIDTH, WIDTH)))


def in_shard_map(xs: jax.Array) -> jax.Array:
    def local(xs: jax.Array) -> jax.Array:
        def step(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            return total + lax.psum(gram(x), "data"), None

        return lax.scan(step, jnp.zeros((WIDTH, WIDTH)), xs)[0]

    return jax.shard_map(local, in_specs=P(None, "data"), out_specs=P())(xs)


def stacked(step: Callable[[jax.Array], Any]) -> Loop:
    return lambda xs: lax.scan(lambda _, x: ((), step(x)), (), xs)[1]


def placed(place: Callable[[Any, jax.Array], Any], begin: float = 0.0) -> Loop:
    """Return a loop that writes the sums of turn `i` to row `place(i, x)` of a tensor."""

    def function(xs: jax.Array) -> jax.Array:
        rows = jnp.full((TURNS, WIDTH, WIDTH), begin)
        return lax.fori_loop(
            0, TURNS, lambda i, rows: lax.dynamic_update_index_in_dim(rows, gram(xs[i]), place(i, xs[i]), 0), rows
        )

    return function


def likelihood_in_shard_map(xs: jax.Array) -> jax.Array:
    def local(xs: jax.Array) -> jax.Array:
        def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = jnp.tanh(state + x)
            return state, lax.psum(jnp.sum(state), "data")

        return lax.scan(step, jnp.zeros_like(xs[0]), xs)[1]

    return jax.shard_map(local, in_specs=P(None, "data"), out_specs=P())(xs)


def at_own_place(xs: jax.Array) -> jax.Array:
    def local(xs: jax.Array) -> jax.Array:
        def step(i: Any, rows: jax.Array) -> jax.Array:
            row = (i + lax.axis_index("data")) % TURNS
            return lax.dynamic_update_index_in_dim(rows, lax.psum(xs[i].sum(0), "data"), row, 0)

        rows = lax.pcast(jnp.zeros((TURNS, WIDTH)), "data", to="varying")
        return lax.fori_loop(0, TURNS, step, rows)

    return jax.shard_map(local, in_specs=P(None, "data"), out_specs=P("data"))(xs)


def of_branch(total: jax.Array, x: jax.Array) -> Any:
    return lax.cond(x[0, 0] > 0, lambda: total + gram(x), lambda: total), None


def of_two(totals: Any, x: jax.Array) -> Any:
    sum_ = gram(x)
    return (totals[0] + sum_, totals[1] + jnp.tanh(sum_)), None


def turns_of_data(xs: jax.Array) -> jax.Array:
    turns = jnp.sum(xs[0, 0] < 9).astype(jnp.int32) // 2
    return lax.fori_loop(0, turns, lambda i, total: total + gram(xs[i]), jnp.zeros((WIDTH, WIDTH)))


def until_large(xs: jax.Array) -> Any:
    return lax.while_loop(
        lambda state: (state[0] < TURNS) & (state[1][0, 0] < 20),
        lambda state: (state[0] + 1, state[1] + gram(xs[state[0]])),
        (0, jnp.zeros((WIDTH, WIDTH))),
    )


MOVED: dict[str, Loop] = {
    "sum": scanned(lambda total, x: (total + gram(x), None)),
    "sum on the right": scanned(lambda total, x: (gram(x) + total, None)),
    "transposed": scanned(lambda total, x: (total + gram(x).T, None)),
    "reshaped": lambda xs: scanned(lambda total, x: (total + gram(x).ravel(), None), jnp.zeros(WIDTH**2))(xs),
    "integers": lambda xs: scanned(
        lambda total, x: (total + gram((x * 9).astype(jnp.int32)), None), jnp.zeros((WIDTH, WIDTH), jnp.int32)
    )(xs),
    "mixed precision": in_mixed_precision,
    "gradients": of_gradients,
    "nested": nested,
    "shard_map": in_shard_map,
    "stacked": stacked(gram),
    "stacked scalars": stacked(lambda x: jnp.sum(jnp.tanh(x))),
    "stacked means in reverse": lambda xs: lax.scan(lambda _, x: ((), x.mean()), (), xs, reverse=True)[1],
    "places of turns": placed(lambda i, x: TURNS - 1 - i),
    "one place": placed(lambda i, x: 2),
    "likelihoods in shard_map": likelihood_in_shard_map,
}

KEPT: dict[str, Loop] = {
    "nested, in one total": nested_in_one_total,
    "other numbers": lambda xs: scanned(lambda total, x: (total + gram(x), None), jnp.ones((WIDTH, WIDTH)))(xs),
    "running sums": scanned(lambda total, x: (total + gram(x), total)),
    "sums of each turn": scanned(lambda total, x: ((new := total + gram(x)), new)),
    "terms of each turn": scanned(lambda total, x: (total + (term := gram(x)), term)),
    "a read": scanned(lambda total, x: (total + gram(x + total[0]), None)),
    "a product": scanned(lambda total, x: (total * gram(x), None)),
    "a difference": scanned(lambda total, x: (gram(x) - total, None)),
    "a maximum": scanned(lambda total, x: (jnp.maximum(total, gram(x)), None)),
    "a maximum over devices": lambda xs: scanned(lambda total, x: (total + jnp.max(x, axis=0), None), jnp.zeros(WIDTH))(
        xs
    ),
    "twice itself": scanned(lambda total, x: (total + total + gram(x), None)),
    "truth values": lambda xs: scanned(lambda any_, x: (any_ | jnp.any(x > 1.5, axis=0), None), jnp.zeros(WIDTH, bool))(
        xs
    ),
    "a function of the sum": scanned(lambda total, x: (total + jnp.tanh(gram(x)), None)),
    "two uses": lambda xs: scanned(of_two, (jnp.zeros((WIDTH, WIDTH)), jnp.zeros((WIDTH, WIDTH))))(xs),
    "a narrower total": lambda xs: scanned(
        lambda total, x: (total + gram(x).astype(jnp.bfloat16), None), jnp.zeros((WIDTH, WIDTH), jnp.bfloat16)
    )(xs),
    "divided by zero": scanned(lambda total, x: (total + gram(x) / 0, None)),
    "a branch": scanned(of_branch),
    "an unknown number of turns": turns_of_data,
    "a condition that reads it": until_large,
    "stacked maxima": stacked(lambda x: jnp.max(x, axis=0)),
    "stacked and returned": scanned(lambda total, x: ((new := gram(x)), new)),
    "places of data": placed(lambda i, x: jnp.argmax(x[0]) % TURNS),
    "places in ones": placed(lambda i, x: i, begin=1.0),
    "places of devices": at_own_place,
    "one turn": lambda xs: scanned(lambda total, x: (total + gram(x), None))(xs[:1]),
}

MANUAL = {"shard_map", "likelihoods in shard_map", "places of devices"}
"""The names of loops in `jax.shard_map`."""


def in_loops(function: Loop, xs: Any) -> int:
    """Return the number of all-reduces in the loops of a device's program."""
    local = partitioned_program(sdy.jit(function).lower(xs)).local
    return sum(len(operations_of(loop, AllReduceOp)) for loop in operations_of(local, WhileOp))


@pytest.mark.parametrize("name", [*MOVED, *KEPT])
def test_sums_are_moved_out_of_loops(name: str) -> None:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    xs = jax.ShapeDtypeStruct((TURNS, ROWS, WIDTH), "float32", sharding=NamedSharding(mesh, P(None, "data")))
    with jax.set_mesh(mesh):
        assert (in_loops(MOVED.get(name) or KEPT[name], xs) == 0) == (name in MOVED)


@covering
@pytest.mark.parametrize("name", sample([*MOVED, *KEPT], one_in=3))
@pytest.mark.parametrize("rows", [ROWS, ROWS - 3], ids=["even", "uneven"])
def test_results_are_those_of_one_device(name: str, rows: int) -> None:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    function = MOVED.get(name) or KEPT[name]
    is_manual = name in MANUAL
    if is_manual and rows % 8:
        rows = ROWS + 8
    host = np.random.default_rng(0).normal(size=(TURNS, rows, WIDTH)).astype(np.float32)
    with jax.set_mesh(mesh):
        xs = jax.device_put(host, NamedSharding(mesh, P(None, "data") if rows % 8 == 0 else P()))

        def call(xs: jax.Array) -> Any:
            return function(lax.with_sharding_constraint(xs, P(None, "data")))

        results = sdy.jit(call)(xs)
        assert (in_loops(call, xs) == 0) == (name in MOVED)
        expected = jax.jit(call)(xs) if is_manual else None
    if expected is None:
        expected = jax.jit(function)(jax.device_put(host, jax.devices()[0]))
    tolerance = 2e-2 if "mixed" in name or "narrower" in name else 1e-5
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(
            np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=tolerance, atol=tolerance
        ),
        results,
        expected,
    )


def accumulated(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Return a sum of products with a parameter that is gathered in each iteration."""

    def step(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        hidden = jnp.tanh(lax.with_sharding_constraint(x @ w, P("data")))
        return total + x.T @ hidden, None

    return lax.scan(step, jnp.zeros_like(w), xs)[0]


@pytest.mark.parametrize(("hardware", "gathers", "reductions"), [("", 0, 0), ("h100", 0, 0), ("tpu-v5p", 1, 1)])
def test_collectives_stay_in_loops_where_computation_hides_them(hardware: str, gathers: int, reductions: int) -> None:
    """Iterations overlap on TPUs, but not on GPUs."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    w, xs = (
        jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(mesh, P(*axes)))
        for shape, axes in [((8192, 8192), ("data",)), ((4, 65536, 8192), (None, "data"))]
    )
    with jax.set_mesh(mesh):
        module = sdy.from_jax(jax.jit(accumulated), w, xs)
    sdy.propagate(module)
    sdy.partition(module, hardware=hardware)
    loops = operations_of(module, WhileOp)
    assert sum(len(operations_of(loop, AllGatherOp)) for loop in loops) == gathers
    assert sum(len(operations_of(loop, AllReduceOp)) for loop in loops) == reductions
