"""Programs with `shard_map` over some or all axes: `sdy.jit` compared with `jax.jit` on eight devices.

All numbers are small integers or computed alike by both, so results are equal.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.jax.api.compile import compile_by_xla
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(64, dtype=np.float32).reshape(8, 8) % 7
RING = [(i, (i + 1) % 4) for i in range(4)]


def mapped(function: Function[Any], in_specs: Any, out_specs: Any, *axes: str) -> Callable[..., Any]:
    """Map `function` over the devices along `axes`, by default all of them."""
    return jax.shard_map(
        function, mesh=MESH, in_specs=in_specs, out_specs=out_specs, axis_names=set(axes), check_vma=False
    )


def collectives(part: jax.Array) -> dict[str, jax.Array]:
    """Apply collectives to a shard of `X` over both axes."""
    return {
        "psum": lax.psum(part, "x"),
        "psum of both": lax.psum(part, ("x", "y")),
        "pmax": lax.pmax(part, "y"),
        "all_gather": lax.all_gather(part, "x", axis=1, tiled=True),
        "ppermute": lax.ppermute(part, "x", RING),
        "ppermute to some": lax.ppermute(part, "y", [(0, 1)]),
        "psum_scatter": lax.psum_scatter(part, "x", scatter_dimension=1, tiled=True),
        "all_to_all": lax.all_to_all(part, "x", 1, 0, tiled=True),
        "axis_index": part + 10 * lax.axis_index("x") + lax.axis_index("y"),
    }


SPECS = {
    "psum": P(None, "y"),
    "psum of both": P(),
    "pmax": P("x"),
    "all_gather": P("x", "y"),
    "ppermute": P("x", "y"),
    "ppermute to some": P("x", "y"),
    "psum_scatter": P(None, ("y", "x")),
    "all_to_all": P(None, ("x", "y")),
    "axis_index": P("x", "y"),
}


def along_x(part: jax.Array) -> dict[str, jax.Array]:
    """Apply collectives along `x` to rows of `X`, with columns and a product that the compiler may shard over `y`."""
    return {
        "product": lax.psum(part.T @ part, "x"),
        "scattered": lax.psum_scatter(part.T @ part, "x", tiled=True),
        "ring": lax.ppermute(part, "x", RING) + lax.axis_index("x"),
        "exchanged": lax.all_to_all(part, "x", 1, 0, tiled=True),
        "gathered": lax.all_gather(part, "x", tiled=True),
    }


def nested(part: jax.Array) -> jax.Array:
    inner = jax.shard_map(
        lambda inside: lax.psum(inside, ("x", "y")), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
    )
    return inner(part)


def loop(part: jax.Array) -> jax.Array:
    """Gather the shards of all devices along `x` in a loop."""

    def step(carried: jax.Array, _: Any) -> tuple[jax.Array, Any]:
        return lax.ppermute(carried, "x", RING) + part, None

    return lax.scan(step, part, None, length=3)[0]


def inside_jit(x: jax.Array) -> jax.Array:
    x = lax.with_sharding_constraint(2 * x, NamedSharding(MESH, P("x", "y")))
    total = jax.jit(mapped(lambda part: lax.psum(part, "x"), P("x"), P(), "x"))(x)
    return (total @ x[:2].T).sum(0)


def squares_of_sums(x: jax.Array) -> jax.Array:
    sums = mapped(lambda part: lax.psum(part, "x") * lax.axis_index("y"), P("x", "y"), P(None, "y"))
    gathered = mapped(lambda part: lax.all_gather(part, "x", tiled=True), P("x"), P("x"), "x")
    return (sums(x) ** 2).sum() + (gathered(x) ** 2).sum()


PROGRAMS: dict[str, Function[Any]] = {
    "all axes": mapped(collectives, P("x", "y"), SPECS),
    "some axes": mapped(
        along_x,
        P("x"),
        {"product": P(), "scattered": P("x"), "ring": P("x"), "exchanged": P(None, "x"), "gathered": P("x")},
        "x",
    ),
    "one in another": jax.shard_map(nested, mesh=MESH, in_specs=P("x"), out_specs=P(), axis_names={"x"}),
    "in a loop": mapped(loop, P("x"), P("x")),
    "inside jit": inside_jit,
    "gradient": jax.grad(squares_of_sums),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_manual_programs_compute_what_they_do_in_jax(name: str):
    sharding = NamedSharding(MESH, P("x", "y"))
    given = sdy.jit(PROGRAMS[name], in_shardings=sharding)(X)
    expected = jax.jit(PROGRAMS[name], in_shardings=sharding)(X)
    jax.tree.map(np.testing.assert_array_equal, given, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_runs_them_whole_and_partitioned(name: str):
    sharding = NamedSharding(MESH, P("x", "y"))
    module = sdy.from_jax(jax.jit(PROGRAMS[name], in_shardings=sharding), X)
    expected = jax.tree.leaves(jax.jit(PROGRAMS[name], in_shardings=sharding)(X))
    whole = sdy.interpret(module, X)
    sdy.propagate(module)
    sdy.partition(module)
    for given, interpreted, wanted in zip(sdy.interpret(module, X), whole, expected, strict=True):
        np.testing.assert_array_equal(interpreted, wanted)
        np.testing.assert_array_equal(given, wanted)


def test_xla_partitions_a_module_to_compare_with():
    module = sdy.from_jax(jax.jit(inside_jit, in_shardings=NamedSharding(MESH, P("x", "y"))), X)
    (expected,) = compile_by_xla(module, jax.devices())(X)
    sdy.propagate(module)
    np.testing.assert_array_equal(sdy.compile(module)(X)[0], expected)
