"""Values that are cast to a wider type are resharded before the cast: devices receive the bytes of the narrow type."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from dearer.case import mesh_of
from samples import covering
from sdy.passes.jax.hlo_received import bytes_received
from sdy.type_helpers import Function

MESH = mesh_of((4,))
ROWS, COLUMNS = 16, 8
WHOLE, BY_ROWS, BY_COLUMNS = P(), P("x"), P(None, "x")


def resharded(value: jax.Array, spec: P = WHOLE) -> jax.Array:
    return lax.with_sharding_constraint(value, NamedSharding(MESH, spec))


def scanned(weights: jax.Array) -> jax.Array:
    return lax.scan(
        lambda total, w: (total + resharded(w.astype("float32")), None), jnp.zeros((ROWS, COLUMNS)), weights
    )[0]


def dequantized(weight: jax.Array) -> jax.Array:
    return resharded(weight.astype("float32") * (jnp.arange(COLUMNS) + 1.0))


CASTS: dict[str, Function[Any]] = {
    "alone": lambda w: resharded(w.astype("float32")),
    "to columns": lambda w: resharded(w.astype("float32"), BY_COLUMNS),
    "times a constant": lambda w: resharded(w.astype("float32") * 2),
    "dequantized": dequantized,
    "transposed": lambda w: resharded(w.astype("float32").T),
    "reshaped": lambda w: resharded(w.astype("float32").reshape(ROWS, 2, COLUMNS // 2)),
    "an operand of a product": lambda w: jnp.ones((4, ROWS)) @ resharded(w.astype("float32")),
    "through two types": lambda w: resharded(w.astype("float16").astype("float32")),
}


@covering
@pytest.mark.parametrize("dtype", ["int8", "bool", "float16"])
@pytest.mark.parametrize("name", CASTS)
def test_the_narrow_type_is_sent(name: str, dtype: str) -> None:
    weight = jnp.asarray(np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 7 - 2, dtype)
    assert_received(CASTS[name], weight, BY_ROWS, BY_COLUMNS if name == "to columns" else WHOLE, weight.nbytes)


def test_the_narrow_type_is_sent_in_a_scan() -> None:
    weights = jnp.asarray(np.arange(3 * ROWS * COLUMNS).reshape(3, ROWS, COLUMNS) % 5, "int8")
    assert_received(scanned, weights, P(None, "x"), WHOLE, weights.nbytes)


def assert_received(function: Function[Any], weight: jax.Array, spec: P, target: P, num_bytes: int) -> None:
    """Check the result, and that a device receives only its missing `num_bytes`."""
    compiled = sdy.jit(function, in_shardings=NamedSharding(MESH, spec)).lower(weight).compile()
    parts = MESH.size
    lacking = (parts - 1) / parts / (1 if target == WHOLE else parts)
    assert bytes_received(compiled.as_text(), MESH.size) == num_bytes * lacking
    result = compiled(jax.device_put(weight, NamedSharding(MESH, spec)))
    np.testing.assert_array_equal(result, jax.jit(function)(weight))
