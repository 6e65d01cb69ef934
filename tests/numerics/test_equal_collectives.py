"""Equal collectives run once, and the results are those of one device."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from xdsl.dialects.builtin import ModuleOp

from partitioned_programs import Argument, D, M, Program, assert_same_as_whole, constrain, partitioned, program
from sdy.ir.walking import operations

ROWS = Argument((16, 8), (D, M))
WEIGHT = Argument((16, 16), (M,))


def twice_the_same_sum(a: jax.Array, b: jax.Array) -> jax.Array:
    return a @ b + jnp.tanh(a @ b)


def normalized(x: jax.Array) -> jax.Array:
    """Normalize rows; the mean is needed by the variance and by the difference."""
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)


def two_softmaxes(x: jax.Array) -> jax.Array:
    return jax.nn.log_softmax(x) + jax.nn.softmax(x)


def neighbours(x: jax.Array) -> jax.Array:
    return (x - jnp.roll(x, 1, 0)) * (x + jnp.roll(x, 1, 0))


def before_and_in_a_loop(x: jax.Array, w: jax.Array) -> jax.Array:
    def turn(_: int, c: jax.Array) -> jax.Array:
        return jnp.tanh(c @ constrain(w, None, None))

    return jax.lax.fori_loop(0, 3, turn, x @ constrain(w, None, None))


def in_a_loop_alone(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ constrain(w, None, None)), x)


def in_two_loops(x: jax.Array, w: jax.Array) -> jax.Array:
    """Scan sharded layers forward and backward, as a gradient does."""

    def layers(x: jax.Array, reverse: bool) -> jax.Array:
        return jax.lax.scan(lambda c, layer: (jnp.tanh(c @ layer), None), x, w, reverse=reverse)[0]

    return layers(layers(x, False), True)


def computed_again(x: jax.Array, w: jax.Array) -> jax.Array:
    """Differentiate with rematerialization: the backward pass gathers the weights again."""

    @jax.checkpoint
    def layer(x: jax.Array) -> jax.Array:
        return jnp.sin(jnp.sin(x @ constrain(jnp.sin(w), None, None)))

    result, backward = jax.vjp(layer, x)
    return result + backward(result)[0]


CASES: dict[str, tuple[Program, dict[str, int]]] = {
    "a sum": (
        program(twice_the_same_sum, Argument((8, 16), (None, D)), Argument((16, 8), (D,))),
        {"all_reduce": 1},
    ),
    "a mean": (program(normalized, ROWS), {"all_reduce": 2}),
    "a maximum and a sum": (program(two_softmaxes, ROWS), {"all_reduce": 2}),
    "a neighbour's row": (program(neighbours, Argument((16, 8), (D,))), {"collective_permute": 1}),
    "before a loop and in it": (program(before_and_in_a_loop, Argument((8, 16), (D,)), WEIGHT), {"all_gather": 1}),
    "in a loop alone": (program(in_a_loop_alone, Argument((8, 16), (D,)), WEIGHT), {"all_gather": 1}),
    "in two loops": (program(in_two_loops, Argument((8, 16), (D,)), Argument((4, 16, 16), (M,))), {"all_gather": 1}),
    "what is to be computed again": (program(computed_again, Argument((8, 16), (D,)), WEIGHT), {"all_gather": 2}),
}
"""Programs, and the sufficient number of collectives of each kind."""


def collectives(module: ModuleOp) -> Counter[str]:
    kinds = ("all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter")
    names = (op.name.removeprefix("stablehlo.") for op in operations(module))
    return Counter(name for name in names if name in kinds)


@pytest.mark.parametrize("name", CASES)
def test_what_is_received_twice_is_received_once(name: str):
    case, enough = CASES[name]
    original = case.module()
    local = partitioned(original)
    assert collectives(local) == enough
    assert_same_as_whole(original, local, case.tolerance)


def test_what_a_loop_does_not_change_is_received_before_it():
    case, _ = CASES["in a loop alone"]
    (gather,) = (op for op in operations(partitioned(case.module())) if op.name == "stablehlo.all_gather")
    around = gather.parent_op()
    assert around is not None
    assert around.name == "func.func"
