"""Scatters of sharded updates: devices receive no more bytes than with `jax.jit`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from dearer.case import Case, mesh_of
from dearer.measure import measure
from samples import covering

FACTORS = np.linspace(0.5, 1.5, 64 * 4, dtype="float32").reshape(64, 4)
ROWS = np.arange(64, dtype="int32") * 7919 % 8
INPUT = np.linspace(1, 2, 8 * 4, dtype="float32").reshape(8, 4)


def assert_not_dearer(
    function: Callable[[jax.Array, jax.Array, jax.Array], Any], operands: list[Any], splits: list[P], result: P
) -> None:
    devices = mesh_of((2, 2))

    def listed(x: jax.Array, i: jax.Array, t: jax.Array) -> list[Any]:
        return [function(x, i, t)]

    shardings = [NamedSharding(devices, split) for split in splits]
    measured = measure(Case("", listed, listed, operands, shardings, [NamedSharding(devices, result)]))
    assert not measured.problem, measured.why


@covering
@pytest.mark.parametrize("rows", [P(), P(("x", "y")), P(None, "y")], ids=str)
@pytest.mark.parametrize("axes", ["x", ("y", "x")])
@pytest.mark.parametrize("update", ["multiply", "add"])
def test_updates_in_parts(update: str, axes: Any, rows: P):
    assert_not_dearer(
        lambda x, i, t: getattr(x.at[i], update)(t), [INPUT, ROWS, FACTORS], [rows, P(axes), P(axes)], rows
    )


@pytest.mark.parametrize("axes", ["x", ("x", "y")])
def test_products_of_segments(axes: Any):
    assert_not_dearer(
        lambda x, i, t: jax.ops.segment_prod(t, i, 8) * x, [INPUT, ROWS, FACTORS], [P(), P(axes), P(axes)], P()
    )


def test_products_of_two_dimensions_of_updates():
    def multiplied(x: jax.Array, i: jax.Array, t: jax.Array) -> jax.Array:
        return x.at[i.reshape(8, 8)].multiply(t.reshape(8, 8, 4))

    assert_not_dearer(multiplied, [INPUT, ROWS, FACTORS], [P(), P("x"), P("x")], P())


def test_products_in_batches():
    def multiplied(x: jax.Array, i: jax.Array, t: jax.Array) -> jax.Array:
        return jax.vmap(lambda x, i, t: x.at[i].multiply(t), (1, None, 1), 1)(x, i, t)

    assert_not_dearer(multiplied, [INPUT, ROWS, FACTORS], [P(None, "y"), P("x"), P("x", "y")], P(None, "y"))


def test_products_of_uneven_parts():
    def multiplied(x: jax.Array, i: jax.Array, t: jax.Array) -> jax.Array:
        return x.at[i[:62]].multiply(jnp.sqrt(t[:62]))

    assert_not_dearer(multiplied, [INPUT, ROWS, FACTORS], [P(), P(("x", "y")), P(("x", "y"))], P())


@covering
@pytest.mark.parametrize("update", ["add", "min", "multiply"])
@pytest.mark.parametrize("result", [P("x"), P(None, "x"), P()], ids=str)
@pytest.mark.parametrize("columns", [P(None, "x"), P(None, ("x", "y"))], ids=str)
def test_updates_of_columns_that_the_same_axis_splits(update: str, columns: P, result: P):
    """The updates move to the devices of their columns: an all-to-all receives less than sums of partial results."""
    rows, updates = P("x"), FACTORS[:8]
    assert_not_dearer(
        lambda x, i, t: getattr(x.at[i], update)(t), [INPUT, ROWS[:8], updates], [columns, rows, rows], result
    )
