"""Slices of sharded dimensions: bitwise equal results, and no more bytes received than with `jax.jit`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from dearer.case import mesh_of
from samples import covering
from sdy.passes.jax.hlo_received import bytes_received

Slice = Callable[[Any], jax.Array]

LINE, GRID = mesh_of((8,)), mesh_of((2, 4))
ROWS = jnp.sin(jnp.arange(16.0 * 24)).reshape(16, 24)


def received(function: Slice, operand: jax.Array, before: NamedSharding, after: NamedSharding) -> float:
    """Check the result and the predicted bytes of `sdy.jit`, and that `jax.jit` receives no fewer; return the bytes."""
    lowered = sdy.jit(function, in_shardings=before, out_shardings=after).lower(operand)
    ours, theirs = (
        bytes_received(each.compile().as_text(), before.mesh.size)
        for each in (lowered, jax.jit(function, in_shardings=before, out_shardings=after).lower(operand))
    )
    result = np.asarray(lowered.compile()(jax.device_put(operand, before)))
    assert result.tobytes() == np.asarray(function(operand)).tobytes()
    if operand.dtype != jnp.bfloat16:  # XLA's CPU backend sends these as float32
        assert sdy.account(lowered).bytes_received == pytest.approx(ours)
    assert ours <= 1.05 * theirs
    return ours


STATIC: dict[str, Slice] = {
    "first rows": lambda x: x[:2],
    "rows of two devices": lambda x: x[3:5],
    "last row": lambda x: x[-1],
    "every fifth row": lambda x: x[1::5],
    "rows and columns": lambda x: x[5:8, 2:4],
    "rows times two": lambda x: x[3:5] * 2,
}
"""Slices of a few rows of 16."""


@pytest.mark.parametrize("function", STATIC.values(), ids=STATIC)
def test_a_few_rows_that_all_devices_need(function: Slice):
    received(function, ROWS, NamedSharding(LINE, P("x")), NamedSharding(LINE, P()))


def test_a_column_that_all_devices_need():
    received(lambda x: x[:, -1], ROWS, NamedSharding(LINE, P(None, "x")), NamedSharding(LINE, P()))


@pytest.mark.parametrize("spec", [P("x", "y"), P("y", "x"), P(("x", "y"))])
def test_a_few_rows_over_two_axes(spec: P):
    received(lambda x: x[3:5], ROWS, NamedSharding(GRID, spec), NamedSharding(GRID, P()))


@pytest.mark.parametrize("dtype", ["int8", "bool", "complex64"])
def test_elements_of_any_type_are_summed_as_bits(dtype: str):
    received(lambda x: x[3:5], ROWS.astype(dtype), NamedSharding(LINE, P("x")), NamedSharding(LINE, P()))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_sign_of_zero_and_nan_are_kept(dtype: str):
    numbers = jnp.full((16, 4), -0.0, dtype).at[3, 1].set(jnp.nan).at[4, 2].set(-jnp.inf)
    received(lambda x: x[3:5], numbers, NamedSharding(LINE, P("x")), NamedSharding(LINE, P()))


def test_a_row_at_an_index_that_is_data():
    """A device receives twice 7/8 of the row; with `jax.jit`, 7/8 of all rows."""
    for index in (0, 13, 15, 100, -1):

        def row(x: jax.Array, index: int = index) -> jax.Array:
            return jax.lax.dynamic_index_in_dim(x, jax.lax.optimization_barrier(jnp.int32(index)), keepdims=False)

        assert received(row, ROWS, NamedSharding(LINE, P("x")), NamedSharding(LINE, P())) < 2 * 24 * 4 + 64


@pytest.mark.parametrize("index", [0, 5, 100, -1])
@pytest.mark.parametrize("is_data", [False, True])
def test_rows_that_vmap_gathers_at_one_index(index: int, is_data: bool):
    """A device receives 7/8 of four rows, at most twice; with `jax.jit`, of all rows if the index is data."""

    def rows(x: jax.Array) -> jax.Array:
        start = jax.lax.optimization_barrier(jnp.int32(index)) if is_data else jnp.int32(index)
        return jax.vmap(lambda column: jax.lax.dynamic_slice(column, (start,), (4,)), in_axes=1, out_axes=1)(x)

    assert received(rows, ROWS, NamedSharding(LINE, P("x")), NamedSharding(LINE, P())) <= 2 * 4 * 24 * 4


def test_a_block_at_an_index_that_is_data_of_two_split_dimensions():
    def block(x: jax.Array) -> jax.Array:
        row, column = jax.lax.optimization_barrier((jnp.int32(6), jnp.int32(11)))
        return jax.lax.dynamic_slice(x, (row, column), (5, 7))

    received(block, ROWS, NamedSharding(GRID, P("x", "y")), NamedSharding(GRID, P()))


def test_rows_that_a_loop_takes_in_turn_are_gathered_once():
    def rows(x: jax.Array) -> jax.Array:
        return jax.lax.map(lambda index: x[index], jnp.arange(16))

    received(rows, ROWS, NamedSharding(LINE, P("x")), NamedSharding(LINE, P()))


def test_chunks_of_a_projection_receive_only_what_moves():
    def chunks(x: jax.Array) -> jax.Array:
        gate, up = jnp.split(x, 2, axis=1)
        return gate * up

    after = NamedSharding(LINE, P(None, "x"))
    numbers = jnp.tile(ROWS, (1, 4))
    assert received(chunks, numbers, after, after) == 2 * 16 * 6 * 4 * 7 / 8


OTHER_LAYOUTS: dict[str, tuple[Slice, P, P]] = {
    "rows, of both axes": (lambda x: x[3:5], P("x", "y"), P(None, "x")),
    "rows, of two axes on one dimension": (lambda x: x[3:5], P(("x", "y")), P(None, "x")),
    "rows, of both axes the other way round": (lambda x: x[3:5], P("y", "x"), P(None, "y")),
    "rows, of one axis": (lambda x: x[3:5], P("x"), P(None, "y")),
    "half of the rows": (lambda x: x[4:12], P("x", "y"), P(None, "x")),
    "columns": (lambda x: x[:, 2:6], P("y", "x"), P("x")),
    "columns, of two axes on one dimension": (lambda x: x[:, 2:6], P(None, ("x", "y")), P("y")),
    "rows behind zeros": (lambda x: jnp.pad(x, ((4, 20), (0, 0))), P("x", "y"), P(None, "x")),
    "columns in front of zeros": (lambda x: jnp.pad(x, ((0, 0), (0, 8))), P(("x", "y")), P("y", "x")),
    "overlapping slices": (lambda x: x[:12] - x[2:14] + x[4:], P("x", "y"), P(None, "x")),
}
"""Slices and pads whose operand and result have different shardings."""


@pytest.mark.parametrize("name", OTHER_LAYOUTS)
def test_the_smaller_side_of_a_slice_is_resharded(name: str):
    function, before, after = OTHER_LAYOUTS[name]
    received(function, ROWS[:, :8], NamedSharding(GRID, before), NamedSharding(GRID, after))


@covering
@pytest.mark.parametrize("spec", [P(None, "x"), P(None, "y"), P(None, ("x", "y")), P("x", "y")])
@pytest.mark.parametrize("cuts", [2, 3, 6, (24, 36)], ids=str)
def test_chunks_and_their_gradients(cuts: int | tuple[int, ...], spec: P):
    def chunks(x: jax.Array) -> jax.Array:
        parts = jnp.split(x, cuts, axis=1)
        return sum((part.sum(1) ** 2 * index for index, part in enumerate(parts, 1)), jnp.zeros(16))

    layout = NamedSharding(GRID, spec)
    whole = jnp.round(10 * jnp.tile(ROWS, (1, 2)))
    received(jax.grad(lambda x: chunks(x).sum()), whole, layout, layout)
