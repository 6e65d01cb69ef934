"""Uneven dimensions: partitioned programs compute the results of one device."""

import jax
import jax.numpy as jnp

from partitioned_programs import Argument, D, M, assert_same_as_whole, constrain, lower
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate


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
