"""Programs with tensors without elements, for which nothing is sent and no warning is given."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from samples import covering

MESH = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[:, :0],
    "strided slice": lambda x: x[:, 8::2],
    "roll by zero": lambda x: jnp.roll(x, 0, 1),
    "roll's gradient": lambda x: jax.linear_transpose(lambda v: jnp.roll(v, 0, 1), x)(x)[0],
    "pad": lambda x: lax.pad(x[:, :0], 1.0, ((0, 0, 0), (3, 5, 0))),
    "concatenate": lambda x: jnp.concatenate([x[:, :0], x, x[:, 8:]], 1),
    "reduce": lambda x: x[:, 3:3].sum(1),
    "product": lambda x: x[:, :0] @ x[:0],
    "update": lambda x: lax.dynamic_update_slice(x, x[:, :0], (0, 3)),
    "scatter": lambda x: x.at[:, jnp.zeros((0,), int)].add(1.0),
    "scatter of all": lambda x: x.at[...].add(2 * x),
    "scatter to all": lambda x: x.at[:].set(2 * x).at[:, :].multiply(x).at[()].max(3 * x),
    "scatter's gradient": jax.grad(lambda x: (x.at[...].set(x * x).at[...].multiply(x)).sum()),
    "gather": lambda x: x[:, jnp.zeros((0,), int)],
    "gather of all": lambda x: lax.gather(
        x, jnp.zeros((0,), int), lax.GatherDimensionNumbers((0, 1), (), ()), slice_sizes=(8, 8)
    ),
    "reshape and transpose": lambda x: jnp.tanh(x[:, :0].T.reshape(0, 4, 2)),
    "sort and cumulative sum": lambda x: jnp.cumsum(jnp.sort(x[:, :0], 1), 0),
    "reverse and broadcast": lambda x: jnp.broadcast_to(x[:, :0][::-1], (3, 8, 0)),
}


@covering
@pytest.mark.parametrize("spec", [P(None, "x"), P("x"), P()], ids=str)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_empty_tensors_cost_nothing(program: Callable[[Any], Any], spec: P):
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    step = sdy.jit(program, in_shardings=(NamedSharding(MESH, spec),))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sdy.ShardingWarning)
        lowered = step.lower(x)
        assert sdy.account(lowered).bytes_received == 0
    result, expected = lowered.compile()(x), program(jnp.asarray(x))
    assert result.shape == expected.shape
    if result.size:  # XLA gives each device a full tensor without elements, and these shards cannot be assembled
        np.testing.assert_array_equal(result, expected)
