"""Reshapes and reshards that move shards: devices receive no more bytes than under jax.jit."""

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

Shape = tuple[int, ...]

RESHAPES: dict[str, tuple[Shape, Shape, Shape, P, P]] = {
    "columns to rows": ((4,), (12, 8), (16, 6), P(None, "x"), P("x")),
    "columns to columns": ((4,), (12, 8), (8, 12), P(None, "x"), P(None, "x")),
    "rows to columns": ((2,), (12, 8), (16, 6), P("x"), P(None, "x")),
    "rows of two axes to rows": ((2, 2), (16, 8), (4, 4, 8), P(("x", "y")), P("x", None, "y")),
    "rows that no dimension takes": ((2, 2), (12, 8), (3, 4, 8), P("x", "y"), P(None, None, "y")),
    "rows that no dimension takes, four columns": ((2, 4), (12, 8), (3, 4, 8), P("x", "y"), P(None, None, "y")),
    "flattened": ((2, 2, 2), (4, 4, 8), (128,), P("x", "y", "z"), P(("z", "y", "x"))),
    "unflattened": ((2, 2, 2), (128,), (4, 4, 8), P(("z", "y", "x")), P("x", "y", "z")),
}

RESHARDS = [
    (P(("x", "y"), "z"), P("z", "y", "x")),
    (P("z", "y", "x"), P(None, "z", "y")),
    (P("x", ("z", "y")), P("z", "y", "x")),
    (P("z", "y", "x"), P("x", ("z", "y"))),
    (P(None, ("z", "x"), None, "y"), P("x", None, ("z", "y"))),
]


@covering
@pytest.mark.parametrize("name", RESHAPES)
@pytest.mark.parametrize("differentiated", [False, True])
def test_a_reshape(name: str, differentiated: bool) -> None:
    sizes, shape, new_shape, spec, new_spec = RESHAPES[name]
    value = jnp.arange(float(np.prod(shape))).reshape(shape)
    if differentiated:
        gradient = jax.grad(lambda x: (x.reshape(new_shape) ** 2).sum())
        assert_no_more_is_received(gradient, value, sizes, spec, spec)
    else:
        assert_no_more_is_received(lambda x: x.reshape(new_shape) * 2, value, sizes, spec, new_spec)


@pytest.mark.parametrize(("spec", "new_spec"), RESHARDS)
def test_a_reshard(spec: P, new_spec: P) -> None:
    """Three axes move between dimensions, around a product whose operand has a third sharding."""
    value = jnp.arange(8.0**4).reshape(8, 8, 8, 8)
    assert_no_more_is_received(lambda x: x * 2, value, (2, 2, 2), spec, new_spec)


def assert_no_more_is_received(
    function: Callable[[jax.Array], jax.Array], value: jax.Array, sizes: Shape, spec: P, new_spec: P
) -> None:
    """Check the result, and that devices receive the predicted bytes, at most those of jax.jit."""
    mesh = mesh_of(sizes)
    shardings: dict[str, Any] = {
        "in_shardings": (NamedSharding(mesh, spec),),
        "out_shardings": NamedSharding(mesh, new_spec),
    }
    lowered = sdy.jit(function, **shardings).lower(value)
    compiled = lowered.compile()
    ours = bytes_received(compiled.as_text(), mesh.size)
    theirs = bytes_received(jax.jit(function, **shardings).lower(value).compile().as_text(), mesh.size)
    assert ours <= 1.05 * theirs
    assert sdy.account(lowered).bytes_received == ours
    np.testing.assert_allclose(np.asarray(compiled(value)), np.asarray(function(value)), rtol=1e-5)
