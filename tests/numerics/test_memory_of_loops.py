"""Predicted memory of loops that update a buffer in place, compared with XLA's."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy

MESH = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
X = jax.ShapeDtypeStruct((256, 64), jnp.float32)


def layers(x: Any) -> Any:
    return lax.scan(lambda x, _: (jnp.sin(2 * x), None), x, None, 16)[0].sum()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "stacked results of a scan": lambda x: lax.scan(lambda x, _: (x * 2, x), x, None, 16)[1],
    "filled row by row": lambda x: lax.fori_loop(0, 16, lambda i, a: a.at[i].set(x * i), jnp.zeros((16, *x.shape))),
    "gradient of a scan": jax.grad(layers),
    "filled in a loop in a loop": lambda x: lax.fori_loop(
        0,
        4,
        lambda i, a: lax.fori_loop(0, 4, lambda j, a: a.at[4 * i + j].set(x * j), a),
        jnp.zeros((16, *x.shape)),
    ),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_buffer_that_is_filled_in_place_counts_once(program: Callable[[Any], Any]):
    account = sdy.account(sdy.jit(program, in_shardings=NamedSharding(MESH, P("x"))), X)
    assert account.compiled is not None
    assert account.compiled.memory is not None
    assert 0.8 <= account.memory / account.compiled.memory <= 1.2
