"""The bench that replaces jax.jit by sdy.jit reports differences, and survives crashes of a process."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.type_helpers import Function

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import drop_in
from corpus import PROGRAMS as CORPUS
from partitioned_programs import GRID
from placed import Placed, by_name, fully_sharded, integers, normal, of_corpus, placed
from samples import large
from side_by_side import Comparison, Cost, compare

LAYER = placed(
    lambda w, x: {"out": jnp.tanh(x @ w), "sum": x.sum(1)},
    (normal(64, 32), P("x")),
    (normal(16, 64, seed=1), P(None, "x")),
)
"""The all-reduces sum 16 x 32 numbers and 16 numbers."""


def silent(_: str) -> None:
    pass


def test_equal_programs_have_no_differences():
    turns: list[str] = []
    comparison = compare(LAYER, say=turns.append)
    assert (comparison.other_shardings, comparison.mismatch) == ((), None)
    assert comparison.sdy.received == comparison.jax.received == 2 * 7 / 8 * 4 * (16 * 32 + 16)
    assert comparison.memory == pytest.approx(1, rel=0.2)
    assert turns == ["jax.jit", "sdy.jit", "comparison"]


def a_little_more(function: Function[Any]) -> Any:

    def run(*arguments: Any) -> Any:
        return jax.tree.map(lambda x: x * 1.001, function(*arguments))

    return sdy.jit(run)


def layers_in_turn(x: jax.Array, layers: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda x, layer: (jnp.tanh(x @ layer), None), x, layers)[0]


def refused_if_large(x: jax.Array, w: jax.Array) -> jax.Array:
    """Raise an error through a callback, as libraries do: one branch of a cond returns an existing value."""
    found = jnp.tanh(x @ w)
    total = jnp.sum(found)

    def refused() -> jax.Array:
        return jax.pure_callback(lambda total: np.full(found.shape, total, np.float32), found, total)

    return jax.lax.cond(total > 1e9, refused, lambda: found)


def trained_table(table: jax.Array, words: jax.Array) -> jax.Array:
    """Train a table whose rows are read one at a time, so that the updates have a dimension of size 1."""

    def loss(table: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(jax.vmap(lambda word: jax.lax.dynamic_slice_in_dim(table, word, 1))(words)))

    return table - jax.grad(loss)(table)


NO_MORE: dict[str, Placed] = {
    "a loop takes slices of what is split": placed(
        layers_in_turn, (normal(16, 32), P("data")), (normal(4, 32, 32), P("data", None, "model")), mesh=GRID
    ),
    "a branch gives what was there before": placed(
        refused_if_large, (normal(16, 64), P("data")), (normal(64, 32), P(None, "model")), mesh=GRID
    ),
    "rows are written one by one": placed(
        trained_table, (normal(64, 16), P("model")), (integers(32, below=64), P("data")), mesh=GRID
    ),
    "one element is split": of_corpus(CORPUS["uneven: one element"]),
}
"""Programs in which devices once received more bytes than under jax.jit."""


@pytest.mark.parametrize("name", NO_MORE)
def test_devices_receive_no_more(name: str):
    comparison = compare(NO_MORE[name], say=silent)
    assert comparison.mismatch is None
    assert comparison.sdy.received <= comparison.jax.received


def test_numbers_beyond_rounding_are_reported_with_their_position():
    mismatch = compare(LAYER, a_little_more, silent).mismatch
    assert mismatch is not None
    assert mismatch.startswith("['out'][0, 0]: ")


def test_other_shardings_are_told():
    split = {"out": NamedSharding(LAYER.mesh, P("x")), "sum": None}
    comparison = compare(LAYER, partial(sdy.jit, out_shardings=split), silent)
    (other,) = comparison.other_shardings
    assert other == "['out']: P('x',) not P()"


@large
def test_bench_survives_a_crash_and_a_refused_program():
    names = [f"corpus, beyond XLA: {name}" for name in ("gradient of an uneven sort", "parity")]
    ended, refused, compared = dict(drop_in.measured([*names, "corpus, training: perceptron"])).values()
    assert ended == drop_in.Failure("jax.jit", "the process ended")
    assert isinstance(refused, drop_in.Failure)
    assert refused.message.startswith("JaxRuntimeError: UNIMPLEMENTED: Unsupported reduction")
    assert isinstance(compared, Comparison)
    assert not compared.mismatch


def test_only_what_is_not_known_of_jax_is_wrong():
    equal = Comparison(Cost(1, 1, 1), Cost(1, 1, 1), ("['out']: P() not P('x')",), None)
    other = Comparison(Cost(1, 1, 1), Cost(1, 1, 1), (), "[0]: 1 not 2")
    assert not drop_in.is_wrong("any", equal)
    assert drop_in.is_wrong("any", other)
    assert drop_in.is_wrong("any", drop_in.Failure("sdy.jit", "the process ended"))
    assert not any(drop_in.is_wrong(name, other) for name in drop_in.BEYOND_JAX)


def test_more_memory_is_let_pass_only_where_arrays_are_small():
    def needs_no_more(name: str, more: int) -> bool:
        return drop_in.needs_no_more_memory(name, Comparison(Cost(1, 1000 + more, 1), Cost(1, 1000, 1), (), None))

    assert needs_no_more("any", 640)
    assert not needs_no_more("any", 641)
    for name in drop_in.GROWING:
        assert needs_no_more(name, 50)
        assert not needs_no_more(name, 51)


def test_rules_split_what_fits():
    rule = by_name({"mu/w": P(None, "x"), "w": P("x")}, otherwise=fully_sharded())
    shapes = {"mu/w": (64, 64), "nu/w": (64, 64), "v/w": (1,), "table": (12, 512), "bias": (64,)}
    assert {name: rule(name, shape) for name, shape in shapes.items()} == {
        "mu/w": P(None, "x"),
        "nu/w": P("x"),
        "v/w": P(),
        "table": P(None, ("x",)),
        "bias": P(),
    }
