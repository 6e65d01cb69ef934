"""Dimensions that their axes do not divide: partitioned programs compute what one device does."""

import jax
import jax.numpy as jnp

from partitioned_programs import Argument, D, M, assert_same_as_whole, constrain, lower, split
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate


def test_what_is_computed_whole_is_told():
    module = lower(split(lambda x: x.reshape(-1)), Argument((13, 7)))
    propagate(module)
    with capture() as warnings:
        partition(module)
    assert [warning.message for warning in warnings] == [
        "'stablehlo.reshape' op is computed whole along the dimensions in which elements change devices "
        "(each device receives 252 bytes more and makes 272 bytes more)"
    ]


def test_rows_and_columns_of_one_uneven_size_are_padded_each_for_itself():
    """Nine rows over four devices take padding to twelve, nine columns over two only to ten."""

    def framed(x: jax.Array) -> jax.Array:
        return constrain(jnp.pad(constrain(x, D, M), 1), D, M)

    module = lower(framed, Argument((9, 7)))
    local = module.clone()
    with capture() as warnings:
        propagate(local)
        partition(local)
    assert not warnings
    assert_same_as_whole(module, local, 0)
