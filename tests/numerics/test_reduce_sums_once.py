"""Sums of sums over devices: one all-reduce where all terms have one, with the results of one device."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from xdsl.dialects.builtin import ModuleOp

from partitioned_programs import GRID, Argument, assert_same_as_whole, constrain, partitioned, program
from samples import covering, sample
from sdy.ir.walking import operations_of
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp

Function = Callable[[jax.Array, jax.Array], Any]
D, M = GRID
ROWS, WIDTH = 24, 6


def gram(x: jax.Array, *axes: Any) -> jax.Array:
    """Return a product of split rows, which is a sum over devices."""
    return constrain(x.T @ x, *axes)


def of_gradients(x: jax.Array, w: jax.Array) -> jax.Array:
    """Return the gradient of what three products read, whose results are split in columns."""
    columns = [constrain(w * scale, None, D) for scale in (1, 2, 3)]

    def loss(x: jax.Array) -> jax.Array:
        q, k, v = (constrain(x @ each, None, D) for each in columns)
        return jnp.sum(jnp.tanh(q) * k + v**2)

    return constrain(jax.grad(loss)(constrain(x[:8, : len(w)])))


def gated(x: jax.Array, w: jax.Array) -> jax.Array:
    up, gate = constrain(w[:, :12], None, D), constrain(w[:, 12:], None, D)
    return constrain(jax.grad(lambda x: jnp.sum(jax.nn.silu(x @ gate) * (x @ up)))(constrain(x[:8, : len(w)])))


def in_loop(x: jax.Array, w: jax.Array) -> jax.Array:
    def step(total: jax.Array, scale: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(total) + gram(x * scale) + gram(x + scale), None

    return lax.scan(step, jnp.zeros((ROWS, ROWS)), jnp.arange(3.0))[0]


def of_branch(x: jax.Array, w: jax.Array) -> jax.Array:
    first = gram(x)
    return lax.cond(w[0, 0] > 0, lambda: first + gram(jnp.tanh(x)), lambda: first)


MERGED: dict[str, tuple[Function, int]] = {
    "two": (lambda x, w: gram(x) + gram(w), 1),
    "four": (lambda x, w: (gram(x) + gram(w)) + (gram(x + 1) + gram(w + 1)), 1),
    "with a replicated term": (lambda x, w: gram(x) + jnp.arange(ROWS, dtype=x.dtype) + gram(w), 1),
    "transposed": (lambda x, w: gram(x).T + constrain(x.T @ w), 1),
    "reshaped": (lambda x, w: gram(x).ravel() + gram(w).ravel(), 1),
    "scaled": (lambda x, w: gram(x) * 3 + -gram(w), 1),
    "wider": (lambda x, w: gram(x.astype(jnp.float16)).astype(jnp.float32) + gram(w), 1),
    "gradients": (of_gradients, 1),
    "a gated product": (gated, 1),
    "a loop": (in_loop, 1),
}
"""Functions, and the number of their all-reduces."""

KEPT: dict[str, tuple[Function, int]] = {
    "another use": (lambda x, w: ((total := gram(x)) + gram(w), jnp.tanh(total)), 2),
    "twice itself": (lambda x, w: (total := gram(x)) + total, 1),
    "a maximum": (lambda x, w: jnp.max(x, axis=0) + gram(w)[0], 2),
    "a product": (lambda x, w: gram(x) * gram(w), 2),
    "a function": (lambda x, w: jnp.tanh(gram(x)) + gram(w), 2),
    "divided by zero": (lambda x, w: gram(x) / 0 + gram(w), 2),
    "times infinity": (lambda x, w: float("inf") * gram(x) - gram(w), 2),
    "other axes": (lambda x, w: gram(x) + constrain(constrain(w.T, None, M) @ constrain(w, M)), 2),
    "a branch": (of_branch, 3),
    "larger after a cast": (
        lambda x, w: gram(x.astype(jnp.float16)).astype(jnp.float32) + gram(w.astype(jnp.float16)).astype(jnp.float32),
        2,
    ),
}


def program_of_rows(name: str, size: int) -> ModuleOp:
    """Return a program on the first `size` rows of its arguments."""
    function, _ = MERGED.get(name) or KEPT[name]

    def step(x: jax.Array, w: jax.Array) -> Any:
        return function(*(constrain(each[:size], D) for each in (x, w)))

    return program(step, *[Argument((ROWS, ROWS), (D,))] * 2).module()


@pytest.mark.parametrize("name", [*MERGED, *KEPT])
def test_sums_are_reduced_once(name: str) -> None:
    _, expected = MERGED.get(name) or KEPT[name]
    assert len(operations_of(partitioned(program_of_rows(name, ROWS)), AllReduceOp)) == expected


@covering
@pytest.mark.parametrize("size", [ROWS, ROWS - 3], ids=["even", "uneven"])
@pytest.mark.parametrize("name", sample([*MERGED, *KEPT], one_in=2))
def test_results_are_those_of_one_device(name: str, size: int) -> None:
    whole = program_of_rows(name, size)
    local = partitioned(whole)
    assert_same_as_whole(whole, local, 1e-2 if "wider" in name or "cast" in name else 1e-5)


def test_reduce_scatters_are_merged() -> None:
    whole = program(lambda x, w: gram(x, D) + gram(w, D), *[Argument((ROWS, ROWS), (D,))] * 2).module()
    local = partitioned(whole)
    assert len(operations_of(local, ReduceScatterOp)) == 1
    assert not operations_of(local, AllReduceOp)
    assert_same_as_whole(whole, local, 1e-5)


@pytest.mark.parametrize("name", ["two", "four", "with a replicated term"])
def test_integers_are_equal(name: str) -> None:
    whole = program(MERGED[name][0], *[Argument((ROWS, ROWS), (D,), "int32")] * 2).module()
    local = partitioned(whole)
    assert len(operations_of(local, AllReduceOp)) == 1
    assert_same_as_whole(whole, local)


def test_long_sums_are_merged() -> None:
    def long(x: jax.Array, w: jax.Array) -> jax.Array:
        total = gram(x)
        for turn in range(1200):
            total = total + float(turn)
        return total + gram(w)

    whole = program(long, *[Argument((ROWS, ROWS), (D,))] * 2).module()
    assert len(operations_of(partitioned(whole), AllReduceOp)) == 1
