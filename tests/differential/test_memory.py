"""Peak memory of a device under sdy.jit, compared with jax.jit: arguments, results and temporaries."""

import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from xdsl.dialects.builtin import ModuleOp

import sdy
from partitioned_programs import GRID, LINE, constrain, ints, partitioned, program
from samples import sample
from sdy.ir.walking import operations_of
from sdy.passes.driver import run_passes
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.reducing_collectives import AllReduceOp

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import drop_in
from placed import Placed, integers, normal, placed
from side_by_side import compare

SQUARE = {"x": 2, "y": 4}


def differences(x: jax.Array) -> jax.Array:
    """Compute differences on a torus, by slices of a wrap-padded tensor."""
    padded = jnp.pad(x, 1, mode="wrap")
    return padded[2:, 1:-1] - padded[:-2, 1:-1] + padded[1:-1, 2:] - padded[1:-1, :-2]


def sums_of_pairs(x: jax.Array) -> jax.Array:
    """Sum pairs of rows. The rows of a pair are on devices at different distances from the device of the sum."""
    return jnp.tanh(x[::2] + x[1::2]).sum(0)


def largest(table: jax.Array, rows: jax.Array, found: jax.Array) -> jax.Array:
    return table.at[rows].max(found)


def largest_uneven(table: jax.Array, rows: jax.Array, found: jax.Array) -> jax.Array:
    return constrain(table, None, "model").at[constrain(rows, "data")].max(constrain(found, "data", "model"))


def power(x: jax.Array) -> jax.Array:
    """Multiply matrices; the second one is replicated along one of two axes."""
    square = x @ x.T
    return square @ square @ x


def three(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    """Contract three tensors; the product of two is a partial sum larger than its operands."""
    return jnp.einsum("ijk,jl,klm->im", a, b, c)


def maximisation(means: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Take an M-step of a Gaussian mixture, comparing element by element."""
    weights = jax.nn.softmax(-((x[:, None] - means) ** 2).sum(-1))
    return weights.T @ x, weights.sum(0)


def loss_and_gradients(
    bias: jax.Array, x: jax.Array, up: jax.Array, down: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Return the loss, which needs large logits, before the gradients, which need a larger hidden layer."""

    def loss(bias: jax.Array, x: jax.Array) -> jax.Array:
        hidden = jnp.sin(x @ up + bias)
        return -jax.nn.log_softmax(hidden @ down)[..., 0].mean()

    return jax.value_and_grad(loss, (0, 1))(bias, x)


PROGRAMS: dict[str, Callable[[], Placed]] = {
    "all-reduces beside values that are never materialized": lambda: placed(
        maximisation, (normal(16, 64), P()), (normal(512, 64, seed=1), P("x")), mesh=LINE
    ),
    "a loss and gradients": lambda: placed(
        loss_and_gradients,
        (normal(256), P()),
        (normal(256, 32, 16, seed=1), P("x")),
        (normal(16, 256, seed=2), P()),
        (normal(256, 64, seed=3), P()),
        mesh=LINE,
    ),
    "concatenations of shards of distant devices": lambda: placed(
        differences, (normal(128, 128), P("data", "model")), mesh=GRID
    ),
    "shards at different distances": lambda: placed(sums_of_pairs, (normal(8, 4096), P("x")), mesh=LINE),
    "a scatter with maximum": lambda: placed(
        largest,
        (normal(128, 256), P(None, "model")),
        (integers(256, below=128), P("data")),
        (normal(256, 256, seed=1), P("data", "model")),
        mesh=GRID,
    ),
    "an uneven scatter with maximum": lambda: placed(
        largest_uneven,
        (normal(105, 57), P()),
        (integers(40, below=105), P()),
        (normal(40, 57, seed=1), P()),
        mesh=GRID,
    ),
    "replicated products": lambda: placed(power, (normal(64, 128), P("x", "y")), mesh=SQUARE),
    "replicated partial products": lambda: placed(
        three,
        (normal(64, 32, 32), P("data")),
        (normal(32, 64, seed=1), P("model")),
        (normal(32, 64, 48, seed=2), P(None, "model")),
        mesh=GRID,
    ),
}


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=4))
def test_a_device_needs_no_more_memory_than_under_jax(name: str):
    comparison = compare(PROGRAMS[name](), say=lambda _: None)
    assert comparison.mismatch is None
    assert comparison.memory <= drop_in.MOST
    assert comparison.received <= 1


def summed(name: str, value: str, type_: str) -> str:
    return f"""
    {name} = "stablehlo.all_reduce"({value}) <{{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
    }}> ({{
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }}) : (tensor<{type_}>) -> tensor<{type_}>"""


SMALL = f"""
module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: tensor<4x2xf32>, %y: tensor<3xf32>, %z: tensor<32x16xf32>)
      -> (tensor<4x2xf32>, tensor<3xf32>, tensor<32x16xf32>) {{
    {summed("%0", "%x", "4x2xf32")}
    %1 = stablehlo.negate %0 : tensor<4x2xf32>
    {summed("%2", "%z", "32x16xf32")}
    {summed("%3", "%1", "4x2xf32")}
    {summed("%4", "%y", "3xf32")}
    {summed("%5", "%y", "3xf32")}
    return %3, %4, %2 : tensor<4x2xf32>, tensor<3xf32>, tensor<32x16xf32>
  }}
}}
"""


def shapes_of_sums(module: ModuleOp) -> list[tuple[int, ...]]:
    return [tuple(tensor_type(op.operands[0]).get_shape()) for op in operations_of(module, AllReduceOp)]


def test_small_all_reduces_with_equal_dependences_are_combined():
    """Sums are not combined if one waits for the other, if they are large, or if they are unused."""
    module = sdy.parse(SMALL)
    run_passes(module, "sdy-combine-small-reductions")
    module.verify()
    assert shapes_of_sums(module) == [(32, 16), (11,), (4, 2)]


WAITING_FOR_NONE = f"""
module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: tensor<4xf32>, %z: tensor<32x16xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<32x16xf32>) {{
    {summed("%0", "%x", "4xf32")}
    %1 = stablehlo.negate %x : tensor<4xf32>
    {summed("%2", "%1", "4xf32")}
    {summed("%3", "%z", "32x16xf32")}
    return %0, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<32x16xf32>
  }}
}}
"""


def test_independent_all_reduces_are_left_to_xla():
    module = sdy.parse(WAITING_FOR_NONE)
    run_passes(module, "sdy-combine-small-reductions")
    assert shapes_of_sums(module) == [(4,), (4,), (32, 16)]


BESIDE_A_BROADCAST = f"""
module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x900xf32>) {{
    {summed("%0", "%x", "4xf32")}
    {summed("%1", "%y", "4xf32")}
    {summed("%2", "%1", "4xf32")}
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x900xf32>
    return %0, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4x900xf32>
  }}
}}
"""


def test_unmaterialized_broadcasts_do_not_count_for_the_size_threshold():
    """XLA may not materialize a broadcast, so no copy counts as small beside it."""
    module = sdy.parse(BESIDE_A_BROADCAST)
    run_passes(module, "sdy-combine-small-reductions")
    assert shapes_of_sums(module) == [(4,), (4,), (4,)]


def test_combined_all_reduces_give_the_same_sums():
    def sums(a: jax.Array, b: jax.Array, large: jax.Array) -> tuple[jax.Array, ...]:
        first = a.sum(0)
        return first, b.sum(0), (first * a).sum(0), large.sum(0)

    whole = program(sums, *(ints((16, *rest), "x") for rest in ((4, 2), (3,), (32, 16))), mesh=LINE).module()
    local = partitioned(whole)
    assert len(shapes_of_sums(local)) == 4
    run_passes(local, "sdy-combine-small-reductions")
    assert shapes_of_sums(local) == [(11,), (4, 2), (32, 16)]
    inputs = [np.random.default_rng(0).integers(-9, 9, (16, *rest), "int32") for rest in ((4, 2), (3,), (32, 16))]
    for found, expected in zip(sdy.interpret(local, *inputs), sdy.interpret(whole, *inputs), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_sharded_scatter_maximum_keeps_nan():
    """The scatter converts floats to integer keys, and the gathered result back to floats."""
    table, found = np.full((105, 57), 2, "float32"), np.ones((40, 57), "float32")
    found[3, 56] = np.nan
    rows = np.arange(40, dtype="int32") * 2
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    with jax.set_mesh(mesh):
        result = np.asarray(sdy.jit(largest_uneven)(table, rows, found))
    expected = table.copy()
    expected[6, 56] = np.nan
    np.testing.assert_array_equal(result, expected)


def append(cache: jax.Array, row: jax.Array, index: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice(cache, row, (index, 0))


def filled(cache: jax.Array, row: jax.Array, index: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 4, lambda turn, cache: cache.at[index + turn].set(row[0] * turn), cache)


def unmatched(cache: jax.Array, row: jax.Array, index: jax.Array) -> jax.Array:
    return cache[:256] + row[0, index]


@pytest.mark.parametrize("function", [append, filled, unmatched])
@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_the_predicted_memory_of_a_donated_argument_is_that_of_xla(
    function: Callable[..., jax.Array], donated: tuple[int, ...]
) -> None:
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    arrays = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((512, 512), (1, 512))]
    step = sdy.jit(function, mesh=mesh, in_shardings=(P(None, "x"), P(), P()), donate_argnums=donated)
    account = sdy.account(step, *arrays, jax.ShapeDtypeStruct((), "int32"))
    assert account.compiled is not None
    assert account.memory == pytest.approx(account.compiled.memory, rel=0.05)
