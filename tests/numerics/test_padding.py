"""Uneven dimensions: partitioned programs compute the results of one device."""

import jax
import jax.numpy as jnp

from partitioned_programs import Argument, D, M, assert_same_as_whole, constrain, lower, split
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate


def test_an_exchange_that_costs_more_than_a_gather_is_a_warning():
    def long_windows(x: jax.Array) -> jax.Array:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (11, 1), (1, 1), "VALID")

    module = lower(split(long_windows), Argument((13, 7)))
    propagate(module)
    with capture() as warnings:
        partition(module)
    assert [warning.message for warning in warnings] == [
        "'stablehlo.reduce_window' op is replicated along the dimensions in which elements change devices "
        "(each device receives 144 bytes more and makes 32 bytes more)"
    ]


def test_rows_and_columns_of_equal_uneven_size_are_padded_separately():
    """Nine rows over four devices are padded to twelve, nine columns over two only to ten."""

    def framed(x: jax.Array) -> jax.Array:
        return constrain(jnp.pad(constrain(x, D, M), 1), D, M)

    module = lower(framed, Argument((9, 7)))
    local = module.clone()
    with capture() as warnings:
        propagate(local)
        partition(local)
    assert not warnings
    assert_same_as_whole(module, local, 0)
