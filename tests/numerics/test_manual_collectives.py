"""Collectives in functions of `jax.shard_map` that move or compute more than devices keep."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

import sdy
from partitioned_programs import GRID, D, M, partitioned
from sdy.ir.walking import operations_of
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.spmd.local_module import COLLECTIVES

Function = Callable[[jax.Array], jax.Array]
SHAPE = (8, 16, 32)
"""The shape of each device's array, which 4 x 2 devices join in the first and the second dimension."""

BOTH = (D, M)


def own(x: jax.Array, axes: Any, dim: int, *, offset: int = 0, turned: bool = False) -> jax.Array:
    """Return the part of `x` along `dim` whose number is the index of the device along `axes`."""
    count = lax.axis_size(axes)
    number = (lax.axis_index(axes) + offset) % count
    size = x.shape[dim] // count
    return lax.dynamic_slice_in_dim(x, (count - 1 - number if turned else number) * size, size, dim)


def gathered(x: jax.Array, axes: Any, dim: int) -> jax.Array:
    return lax.all_gather(x, axes, axis=dim, tiled=True)


def in_loop(x: jax.Array) -> jax.Array:
    number = lax.axis_index(D)

    def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        y = lax.psum(jnp.tanh(x), D)
        return gathered(lax.dynamic_slice_in_dim(y, 4 * number, 4, 1), D, 1), None

    return lax.scan(step, x, None, length=3)[0]


def in_branch(x: jax.Array) -> jax.Array:
    total = lax.psum(x, D)
    return lax.cond(lax.axis_index(M) == 0, lambda: own(total / 4, D, 1), lambda: x[:, :4])


def of_flag(x: jax.Array) -> jax.Array:
    return own(lax.select_n(lax.psum(x[0, 0, 0], D) > 0, jnp.zeros(SHAPE), jnp.ones(SHAPE)), D, 1)


KEPT: dict[str, tuple[Function, list[str]]] = {
    "a sum": (lambda x: own(lax.psum(x, D), D, 1), ["reduce_scatter"]),
    "a maximum": (lambda x: own(lax.pmax(x, M), M, 2), ["reduce_scatter"]),
    "a sum of all": (lambda x: own(lax.psum(x, BOTH), BOTH, 2), ["reduce_scatter"]),
    "a mean": (lambda x: own(lax.psum(x, D) / 4, D, 0), ["reduce_scatter"]),
    "another dimension": (lambda x: own(gathered(x, D, 0), D, 1), ["all_to_all"]),
    "another dimension of all": (lambda x: own(gathered(x, (M, D), 1), (M, D), 2), ["all_to_all"]),
    "the same dimension": (lambda x: own(gathered(x, D, 2), D, 2), []),
    "stacked": (lambda x: lax.dynamic_index_in_dim(lax.all_gather(x, D), lax.axis_index(D), 0, keepdims=False), []),
    "a loop": (in_loop, ["reduce_scatter", "all_gather"]),
    "of a cast": (lambda x: own(2 - jnp.exp(lax.psum(x, D).astype("bfloat16")) / 3, D, 1), ["reduce_scatter"]),
    "a sum with itself": (lambda x: own(lax.psum(x, D) + x, D, 1), ["all_reduce"]),
    "in a branch": (in_branch, ["reduce_scatter"]),
    "a scalar that selects": (of_flag, ["all_reduce"]),
    "other axes": (lambda x: own(lax.psum(x, D), M, 1), ["all_reduce"]),
    "the next part": (lambda x: own(gathered(x, D, 0), D, 0, offset=1), ["all_gather"]),
    "parts in reverse": (lambda x: own(lax.psum(x, D), D, 0, turned=True), ["all_reduce"]),
    "axes in another order": (lambda x: own(lax.psum(x, BOTH), (M, D), 1), ["all_reduce"]),
    "another use": (lambda x: (y := lax.psum(x, D))[:, :4] + own(y, D, 1), ["all_reduce"]),
    "a slice of two dimensions": (lambda x: own(lax.psum(x, D), D, 1)[:, :, 3:], ["reduce_scatter"]),
    "a smaller part": (lambda x: own(lax.psum(x, M), D, 1), ["all_reduce"]),
}
"""Functions of each device's array, and their collectives in the partitioned program."""

EXPANDED: dict[str, tuple[Function, int]] = {
    "repeated": (lambda x: gathered(jnp.repeat(x, 3, axis=1), D, 0), 3 * 8 * 16 * 32),
    "repeated and turned": (lambda x: gathered(jnp.repeat(x, 3, axis=1).transpose(2, 1, 0), D, 2), 3 * 8 * 16 * 32),
    "tiled": (lambda x: gathered(jnp.tile(x, (1, 2, 1)), M, 2), 8 * 16 * 32),
    "a sum": (lambda x: lax.psum(jnp.broadcast_to(x[:, :1], x.shape), M), 8 * 32),
    "a permute": (lambda x: lax.ppermute(jnp.repeat(x, 2, axis=0), M, [(0, 1), (1, 0)]), 8 * 16 * 32),
    "an exchange": (
        lambda x: lax.all_to_all(jnp.repeat(x, 2, axis=1), D, split_axis=2, concat_axis=0, tiled=True),
        3 * 2 * 16 * 32,
    ),
    "the gathered dimension": (lambda x: gathered(jnp.repeat(x, 2, axis=0), D, 0), 2 * 3 * 8 * 16 * 32),
    "another use": (lambda x: (y := jnp.repeat(x, 2, axis=1))[:, :4].sum() + gathered(y, D, 0), 2 * 3 * 8 * 16 * 32),
}
"""Functions of each device's array, and the elements that a device receives."""


def on_mesh(function: Function) -> tuple[Callable[[jax.Array], jax.Array], jax.ShapeDtypeStruct]:
    """Return a function of the whole array, and its argument."""
    mesh = jax.make_mesh(tuple(GRID.values()), tuple(GRID), axis_types=(jax.sharding.AxisType.Auto,) * len(GRID))
    spec = PartitionSpec(D, M)
    sizes = SHAPE[0] * GRID[D], SHAPE[1] * GRID[M], SHAPE[2]
    mapped = jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return mapped, jax.ShapeDtypeStruct(sizes, "float32", sharding=NamedSharding(mesh, spec))


def check_results(
    function: Callable[[jax.Array], jax.Array], argument: jax.ShapeDtypeStruct, rtol: float = 1e-5
) -> None:
    x = jax.device_put(np.random.default_rng(0).normal(size=argument.shape).astype("float32"), argument.sharding)
    np.testing.assert_allclose(sdy.jit(function)(x), jax.jit(function)(x), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", KEPT)
def test_devices_receive_their_own_part(name: str) -> None:
    function, expected = KEPT[name]
    whole, argument = on_mesh(function)
    local = partitioned(from_jax(jax.jit(whole).lower(argument)))
    assert [op.name.removeprefix("stablehlo.") for op in operations_of(local, *COLLECTIVES)] == expected
    check_results(whole, argument)


@pytest.mark.parametrize("name", EXPANDED)
def test_values_are_repeated_after_collectives(name: str) -> None:
    function, elements = EXPANDED[name]
    whole, argument = on_mesh(function)
    received = sdy.account(whole, argument).bytes_received
    assert received == 4 * elements
    check_results(whole, argument)
