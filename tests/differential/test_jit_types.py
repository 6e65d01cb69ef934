"""`sdy.jit` compared with `jax.jit` for arrays with sharding in types, and for requests of a single device."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.type_helpers import Function

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def mesh_of(sizes: tuple[int, ...], *types: AxisType) -> jax.sharding.Mesh:
    return jax.make_mesh(sizes, ("x", "y"), axis_types=types)


def assert_same(function: Function[Any], *arguments: jax.Array) -> None:
    """Check that both give the same numbers on the same devices."""
    ours, of_jax = (jit(function)(*arguments) for jit in (sdy.jit, jax.jit))
    assert ours.sharding == of_jax.sharding
    for one, other in zip(ours.addressable_shards, of_jax.addressable_shards, strict=True):
        np.testing.assert_allclose(one.data, other.data, rtol=1e-6)


def test_axes_of_size_one_stay_in_the_type():
    mesh = mesh_of((4, 1), AxisType.Explicit, AxisType.Explicit)
    with jax.set_mesh(mesh):
        assert_same(lambda x: x * 2, jax.device_put(X, P("x", "y")))
        assert_same(lambda x: x.T + 1, jax.device_put(X, P("x", "y")))


def test_a_mesh_may_have_axes_of_both_kinds():
    mesh = mesh_of((4, 2), AxisType.Explicit, AxisType.Auto)
    for spec in (P("x", "y"), P(("x", "y"), None), P(None, "y")):
        x = jax.device_put(X, NamedSharding(mesh, spec))
        with jax.set_mesh(mesh):
            np.testing.assert_allclose(sdy.jit(lambda x: x * 2)(x), 2 * X)


@pytest.mark.parametrize("unreduced", [frozenset({"x"}), frozenset({"x", "y"})])
def test_results_that_are_still_to_be_reduced(unreduced: frozenset[str]):
    mesh = mesh_of((4, 2), AxisType.Explicit, AxisType.Explicit)

    def rows(x: jax.Array) -> jax.Array:
        return jax.lax.reduce_sum(x, axes=(0, 1), out_sharding=P(unreduced=unreduced))

    with jax.set_mesh(mesh):
        x = jax.device_put(X, P("x", "y"))
        assert_same(rows, x)
        total = sdy.jit(rows)(x)
        assert_same(lambda partial: jax.sharding.reshard(partial, P()) + 1, total)


def test_a_gradient_is_still_to_be_reduced_where_the_argument_is_reduced():
    mesh = mesh_of((4, 2), AxisType.Explicit, AxisType.Explicit)
    with jax.set_mesh(mesh):
        w = jax.device_put(jnp.arange(4.0), P(reduced=frozenset({"x"})))
        assert_same(jax.grad(lambda w: jnp.sin(w).sum()), w)


def test_one_device_may_be_asked_for():
    device = jax.devices()[3]
    for name in ("in_shardings", "out_shardings"):
        options: dict[str, Any] = {name: SingleDeviceSharding(device)}
        ours, of_jax = (jit(jnp.tanh, **options)(X) for jit in (sdy.jit, jax.jit))
        assert ours.devices() == of_jax.devices() == {device}
        np.testing.assert_allclose(ours, of_jax, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:backend and device argument")
def test_an_array_on_a_mesh_is_computed_with_on_one_device():
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    found = sdy.jit(lambda x: x @ x.T, device=jax.devices()[1])(x)
    assert found.devices() == {jax.devices()[1]}
    np.testing.assert_allclose(found, X @ X.T)
