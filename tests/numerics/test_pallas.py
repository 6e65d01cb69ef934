"""Interpreted Pallas kernels without an annotation, which are partitioned like other operations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy


def scale(x: Any, scales: Any, out: Any) -> None:
    out[...] = jnp.tanh(x[...]) * scales[...]


def scaled(x: jax.Array, scales: jax.Array) -> jax.Array:
    """Multiply the rows of x by scales, two rows per program instance."""

    def rows(i: int) -> tuple[int, int]:
        return i, 0

    def whole(i: int) -> tuple[int]:
        return (0,)

    specs = [pl.BlockSpec((2, x.shape[1]), rows), pl.BlockSpec(scales.shape, whole)]
    type_ = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(scale, type_, grid=(x.shape[0] // 2,), in_specs=specs, out_specs=specs[0], interpret=True)(
        x, scales
    )


def test_it_computes_what_it_does_on_one_device():
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    x, scales = np.linspace(-2, 2, 128, dtype=np.float32).reshape(16, 8), np.arange(8, dtype=np.float32)
    split = NamedSharding(mesh, P("x", "y"))
    result = sdy.jit(lambda x, scales: scaled(x, scales) + x, in_shardings=(split, None))(x, scales)
    np.testing.assert_allclose(result, scaled(jnp.array(x), jnp.array(scales)) + x, rtol=1e-6)


def test_what_pallas_cannot_differentiate_is_told_with_what_to_write():
    @sdy.register_op("a b^, b^ -> a b^", name="scaled_in_pallas")
    def without_gradient(x: jax.Array, scales: jax.Array) -> jax.Array:
        return scaled(x, scales)

    with pytest.raises(ValueError, match="Linearization failed") as caught:
        jax.grad(lambda x: without_gradient(x, jnp.ones(8)).sum())(jnp.ones((16, 8)))
    told = "The function of operator 'scaled_in_pallas' is differentiated: if it cannot be, write "
    assert [note for note in caught.value.__notes__ if note.startswith(told)]
