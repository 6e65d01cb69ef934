"""`sdy.account`, `sdy.lint` and `sdy.report` on what Equinox and Flax jit and lower."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def of_equinox() -> tuple[Any, tuple[Any, ...]]:
    def apply(model: Any, x: jax.Array) -> jax.Array:
        return constrained(jax.vmap(model)(x))

    return eqx.filter_jit(apply), (eqx.nn.MLP(32, 32, 64, 2, key=jax.random.key(0)), jnp.ones((16, 32)))


def of_flax() -> tuple[Any, tuple[Any, ...]]:
    def apply(model: Any, x: jax.Array) -> jax.Array:
        return constrained(model(x))

    return nnx.jit(apply), (nnx.Linear(32, 32, rngs=nnx.Rngs(0)), jnp.ones((16, 32)))


def constrained(x: jax.Array) -> jax.Array:
    """Split the rows of a value, then replicate it."""
    rows = jax.lax.with_sharding_constraint(x, NamedSharding(MESH, PartitionSpec("x")))
    return jax.lax.with_sharding_constraint(jnp.tanh(rows), NamedSharding(MESH, PartitionSpec()))


@pytest.mark.parametrize("of_library", [of_equinox, of_flax])
def test_jitted_and_lowered_programs(of_library: Callable[[], tuple[Any, tuple[Any, ...]]]) -> None:
    step, arguments = of_library()
    of_function = sdy.account(step, *arguments)
    of_lowered = sdy.account(step.lower(*arguments))
    assert of_function.bytes_received == of_lowered.bytes_received == 16 * 32 * 4 * 7 / 8
    (received,) = of_function.received
    assert "test_programs_of_libraries.py" in str(received)
    assert not sdy.lint(step, *arguments)
    assert "test_programs_of_libraries.py" in sdy.report(step.lower(*arguments)).html
