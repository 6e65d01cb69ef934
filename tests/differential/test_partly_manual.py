"""Programs that are manual over some axes, with bodies that the compiler partitions over the others.

`sdy.jit` compared with `jax.jit` on eight devices. All numbers are small integers, so results are equal. One program
returns both the result of a body and collectives of it, because the sharding of one result must not affect another.
"""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from partitioned_programs import partitioned
from samples import covering, sample
from sdy.ir.walking import operations_of
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.spmd.local_module import COLLECTIVES

MESH = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(64, dtype=np.float32).reshape(8, 8) % 5 - 2
W = np.arange(128, dtype=np.float32).reshape(8, 16) % 3 - 1
SWAP = [(0, 1), (1, 0)]

Results = Mapping[str, jax.Array]


def products(x: jax.Array, w: jax.Array) -> Results:
    y = x + jnp.maximum(x @ w, 0) @ w.T
    gram = y.T @ y
    return {
        "y": y,
        "psum_scatter": lax.psum_scatter(gram, "data", tiled=True),
        "psum": lax.psum(gram, "data"),
        "psum of a product with a weight": lax.psum(y @ w, "data"),
        "all_gather": lax.all_gather(y, "data", tiled=True) @ gram,
    }


def exchanges(x: jax.Array, w: jax.Array) -> Results:
    y = x @ w
    return {
        "y": y,
        "all_to_all": lax.all_to_all(y, "data", 1, 0, tiled=True) @ w[:, :8].T,
        "ppermute": lax.ppermute(y.T @ y, "data", SWAP),
        "axis_index": y @ y.T + lax.axis_index("data"),
        "pmax": lax.pmax(w.T @ w * x.sum(), "data"),
    }


def loops(x: jax.Array, w: jax.Array) -> Results:
    def turn(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = lax.ppermute(carry, "data", SWAP) % 7 + row
        return carry, carry @ w

    last, rows = lax.scan(turn, x, x)
    return {
        "carry": last,
        "rows": rows,
        "sum of rows": lax.psum_scatter(rows.sum(0).T @ x % 9, "data", tiled=True),
    }


def moves(x: jax.Array, w: jax.Array) -> Results:
    places = jnp.argsort(x[:, 0])
    start = lax.axis_index("data")
    return {
        "sorted": jnp.sort(x, axis=1),
        "gathered": lax.all_gather(x[places], "data", tiled=True),
        "scattered": w.at[places].add(lax.ppermute(x, "data", SWAP) @ w),
        "sliced": lax.dynamic_slice(w, (start, start), (2, 8)) @ x.T,
        "reshaped": lax.psum(x.reshape(8, 4).T @ x.reshape(8, 4), "data"),
        "running sum": jnp.cumsum(x, axis=1) @ w,
        "joined": jnp.concatenate([x, x @ w], axis=1),
    }


RESULTS = {
    products: {
        "y": P("data"),
        "psum_scatter": P("data"),
        "psum": P(),
        "psum of a product with a weight": P(),
        "all_gather": P(None, "data"),
    },
    exchanges: {
        "y": P("data"),
        "all_to_all": P(None, "data"),
        "ppermute": P("data"),
        "axis_index": P("data"),
        "pmax": P(),
    },
    loops: {"carry": P("data"), "rows": P("data"), "sum of rows": P("data")},
    moves: {
        "sorted": P("data"),
        "gathered": P("data"),
        "scattered": P("data"),
        "sliced": P("data"),
        "reshaped": P(),
        "running sum": P("data"),
        "joined": P(None, "data"),
    },
}
"""For each body, the sharding of its results over the manual axis."""

LAYOUTS = [
    ((P("data"), P(None, "model")), P("data", "model")),
    ((P("model"), P("model")), P("model", "data")),
    ((P(None, "model"), P("model", "data")), P(None, ("data", "model"))),
    ((P(("model", "data")), P()), P(("data", "model"))),
]
"""Shardings of the arguments, and of all results."""


@covering
@pytest.mark.parametrize(("body", "out_specs"), RESULTS.items())
@pytest.mark.parametrize("layout", sample(range(len(LAYOUTS)), one_in=2))
def test_layouts_outside_change_no_result(
    body: Callable[[jax.Array, jax.Array], Results], out_specs: Mapping[str, P], layout: int
):
    given, wanted = LAYOUTS[layout]
    manual = jax.shard_map(
        body, mesh=MESH, in_specs=(P("data"), P()), out_specs=out_specs, axis_names={"data"}, check_vma=False
    )

    def program(x: jax.Array, w: jax.Array) -> Results:
        return jax.tree.map(lambda y: lax.with_sharding_constraint(y, NamedSharding(MESH, wanted)), manual(x + 1, w))

    shardings = tuple(NamedSharding(MESH, spec) for spec in given)
    ours, theirs = (jit(program, in_shardings=shardings)(X, W) for jit in (sdy.jit, jax.jit))
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, name)


ROWS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "all_reduce": lambda x: lax.pmax(x, "data"),
    "reduce_scatter": lambda x: lax.psum_scatter(x, "data", tiled=True),
    "all_gather": lambda x: lax.all_gather(x, "data", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "data", 0, 0, tiled=True),
    "collective_permute": lambda x: lax.ppermute(x, "data", SWAP),
}


@pytest.mark.parametrize("collective", ROWS)
def test_uneven_columns_stay_sharded_in_collectives_of_rows(collective: str) -> None:
    def body(x: jax.Array) -> jax.Array:
        return ROWS[collective](x[:, :13] * 2).sum(axis=1, keepdims=True)

    manual = jax.shard_map(
        body, mesh=MESH, in_specs=P("data"), out_specs=P("data"), axis_names={"data"}, check_vma=False
    )
    x = jax.device_put(W, NamedSharding(MESH, P("data", "model")))
    local = partitioned(from_jax(jax.jit(manual).lower(x)))
    assert [op.name for op in operations_of(local, *COLLECTIVES)] == [f"stablehlo.{collective}", "stablehlo.all_reduce"]
    np.testing.assert_array_equal(sdy.jit(manual)(x), jax.jit(manual)(x))
