"""`sdy.mpmd.circular` computes what the stages compute one after the other, with the predicted bytes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import forked_commands
import sdy
from samples import covering, large, sample
from sdy.passes.jax.hlo_received import bytes_received

MESH = jax.make_mesh((4, 2), ("stage", "data"), (AxisType.Auto,) * 2)
EXAMPLE = Path(__file__).parents[2] / "examples/pipeline.py"
Tree = Any


def stage(w: Tree, x: Tree) -> Tree:
    """Return a residual layer of one input, and a second input that depends on both."""
    y = jnp.tanh(x["a"] @ w["up"]) @ w["down"]
    return {"a": x["a"] + y, "b": x["b"] * 0.5 + jnp.mean(y)}


def serial(w: Tree, xs: Tree) -> Tree:
    """Apply all stages one after the other to all microbatches at once."""
    layers = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[-2:]), w)
    for number in range(layers["up"].shape[0]):
        xs = jax.vmap(stage, (None, 0))(jax.tree.map(lambda leaf, n=number: leaf[n], layers), xs)
    return xs


def arguments(microbatches: int, repeats: int) -> tuple[Tree, Tree]:
    random = np.random.default_rng(0)
    first = (4,) if repeats == 1 else (repeats, 4)

    def drawn(*shape: int) -> np.ndarray[Any, Any]:
        return random.normal(size=shape).astype(np.float32) / 3

    by_stage = NamedSharding(MESH, P("stage") if repeats == 1 else P(None, "stage"))
    params = jax.device_put({"up": drawn(*first, 8, 16), "down": drawn(*first, 16, 8)}, by_stage)
    xs = {"a": drawn(microbatches, 4, 8), "b": drawn(microbatches, 2)}
    return params, jax.device_put(xs, NamedSharding(MESH, P(None, "data")))


def gradient(function: Callable[[Tree, Tree], Tree]) -> Callable[[Tree, Tree], Tree]:
    def loss(w: Tree, xs: Tree) -> jax.Array:
        return sum((jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(function(w, xs))), jnp.float32(0))

    return jax.value_and_grad(loss, argnums=(0, 1))


@covering
@pytest.mark.parametrize(
    ("microbatches", "repeats"), sample([(1, 1), (3, 1), (6, 1), (5, 3), (6, 2), (4, 2)], one_in=3)
)
@pytest.mark.parametrize("jit", [sdy.jit, jax.jit], ids=["sdy.jit", "jax.jit"])
def test_results_and_gradients_equal_those_of_the_serial_program(
    microbatches: int, repeats: int, jit: Callable[..., Any]
) -> None:
    w, xs = arguments(microbatches, repeats)

    def pipelined(w: Tree, xs: Tree) -> Tree:
        return sdy.mpmd.circular(stage, w, xs, repeats=repeats)

    for ours, theirs in sample([(gradient(pipelined), gradient(serial)), (pipelined, serial)]):
        results, expected = jit(ours)(w, xs), jax.jit(theirs)(w, xs)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4), results, expected)


@pytest.mark.parametrize("repeats", [1, 2])
def test_gradients_are_finite_where_zeros_have_none(repeats: int) -> None:
    def unit_rows(w: jax.Array, x: jax.Array) -> jax.Array:
        y = x @ w
        return y / jnp.sqrt(jnp.sum(y * y, -1, keepdims=True))

    w, xs = jnp.eye(8) + jnp.ones((*[repeats] * (repeats > 1), 4, 1, 1)), 1 + jnp.arange(64.0).reshape(4, 2, 8) / 64

    def pipelined(w: jax.Array, xs: jax.Array) -> jax.Array:
        return sdy.mpmd.circular(unit_rows, w, xs, repeats=repeats)

    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(jax.jit(gradient(pipelined))(w, xs)))


@pytest.mark.parametrize("repeats", sample([2, 1], one_in=2))
def test_the_bytes_are_those_predicted_and_not_more_than_under_jax_jit(repeats: int) -> None:
    w, xs = arguments(6, repeats)

    def pipelined(w: Tree, xs: Tree) -> Tree:
        return sdy.mpmd.circular(stage, w, xs, repeats=repeats)

    for function in sample([gradient(pipelined), pipelined]):
        account = sdy.account(sdy.jit(function), w, xs)
        assert account.compiled is not None
        assert account.bytes_received == account.compiled.bytes_received
        text = jax.jit(function).lower(w, xs).compile().as_text()
        assert account.bytes_received <= bytes_received(text, 8)
        assert "collective-permute" in str(account)


def test_only_results_of_stages_move_at_each_tick() -> None:
    w, xs = arguments(6, 1)

    def pipelined(w: Tree, xs: Tree) -> Tree:
        return sdy.mpmd.circular(stage, w, xs)

    (moved,) = (line for line in sdy.account(sdy.jit(pipelined), w, xs).received if "permute" in line.collective)
    ticks, of_one_device = 6 + 4 - 1, 4 * (4 * 8 + 2) // 2
    assert ticks * of_one_device <= moved.bytes <= (ticks + 3) * of_one_device


def added(w: jax.Array, x: jax.Array) -> jax.Array:
    return x + w


def test_values_keep_their_order_without_a_mesh() -> None:
    xs = jnp.arange(5.0)[:, None]
    ys = sdy.mpmd.circular(added, jnp.array([[10.0], [100.0], [1000.0]]), xs)
    np.testing.assert_array_equal(ys, xs + 1110)


@pytest.mark.parametrize(
    ("params", "xs", "repeats", "problem"),
    [
        ({"a": (4, 8), "b": (3, 8)}, (6, 8), 1, r"params\['b'\] of shape .*different numbers of .*stages"),
        ({"a": (4, 8), "b": ()}, (6, 8), 1, r"params\['b'\] of shape \(\) must begin with the numbers of stages: any"),
        (
            {"a": (4, 8)},
            (6, 8),
            2,
            r"params\['a'\] of shape \(4, 8\) must begin with .* repeats and stages: 2, any",
        ),
        ({"a": (2, 4, 8)}, (3, 8), 2, "3 microbatches are fewer than the 4 stages"),
        ({"a": (4, 9)}, (6, 1), 1, r"the stage returns float32\[9\] for an input of float32\[1\]"),
        ({}, (6, 8), 1, "'params' has no arrays"),
        ({"a": (4, 8)}, (6, 8), 0, "'repeats' is 0"),
    ],
)
def test_stages_that_are_not_equal_are_errors(params: Tree, xs: tuple[int, ...], repeats: int, problem: str) -> None:
    zeros = {name: jnp.zeros(shape) for name, shape in params.items()}

    def first_added(w: Tree, x: jax.Array) -> jax.Array:
        return x + w["a"]

    with pytest.raises(ValueError, match=problem):
        sdy.mpmd.circular(first_added, zeros, jnp.zeros(xs), repeats=repeats)


@large
def test_the_example_trains_and_says_what_the_pipeline_costs() -> None:
    run = forked_commands.run([EXAMPLE])
    losses = [float(each) for each in re.findall(r"step \d: loss ([\d.]+)", run.stdout)]
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert "circular, 4 devices, 8 microbatches" in run.stdout
    assert "bubble 27.3%" in run.stdout
    assert re.search(r"largest difference from the serial program: [\d.]+e-0[5-9]", run.stdout)
