"""`chlo.ragged_dot`, as JAX lowers it for TPUs: its sharding rule, its shards, and its cost."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from xdsl.dialects.builtin import ModuleOp

import sdy
from samples import sample
from sdy.diagnostics import capture
from sdy.ir.walking import operations_of
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import compute_seconds
from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp
from sdy.stablehlo.dot import DotGeneralOp

FREE = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0]"
PROGRAMS = {
    "free": ("8x6", "3x6x4", "3", "8x4", f"{FREE}, rhs_group_dimensions = [0]"),
    "contracting": (
        "8x6", "8x4", "3", "3x6x4",
        "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]",
    ),
    "batched": (
        "4x8x6", "3x4x6x4", "4x3", "4x8x4",
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], "
        "rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]",
    ),
    "uneven": ("7x6", "3x6x5", "3", "7x5", f"{FREE}, rhs_group_dimensions = [0]"),
}  # fmt: skip
LAYOUTS = [("", ""), ("x", ""), ("", "x"), ("y", "x"), ("x,y", ""), ("x", "y")]


def program(kind: str, lhs: tuple[str, str], rhs: tuple[str, str]) -> ModuleOp:
    """Return a ragged dot with the axes of the last two dimensions of its factors."""
    left, right, sizes, result, numbers = PROGRAMS[kind]

    def sharding(shape: str, axes: tuple[str, str]) -> str:
        listed = [", ".join(f'"{axis}"' for axis in each.split(",") if axis) for each in axes]
        dims = ["{}"] * (shape.count("x") - 1) + [f"{{{each}}}" for each in listed]
        return f"{{sdy.sharding = #sdy.sharding<@mesh, [{', '.join(dims)}]>}}"

    return sdy.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%lhs: tensor<{left}xf32> {sharding(left, lhs)}, %rhs: tensor<{right}xf32> {sharding(right, rhs)},
                %sizes: tensor<{sizes}xi32>) -> tensor<{result}xf32> {{
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>}}>
    : (tensor<{left}xf32>, tensor<{right}xf32>, tensor<{sizes}xi32>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}
""")


@pytest.mark.parametrize("kind", PROGRAMS)
def test_shards_compute_what_the_whole_computes(kind: str) -> None:
    left, right, sizes, _, _ = PROGRAMS[kind]
    numbers = np.random.default_rng(0)
    lhs, rhs = (numbers.integers(-4, 5, [*map(int, shape.split("x"))]).astype("float32") for shape in (left, right))
    groups = np.broadcast_to(np.array([2, 0, 4], "int32"), [*map(int, sizes.split("x"))])
    for lhs_axes, rhs_axes in sample(product(LAYOUTS, repeat=2)):
        module = program(kind, lhs_axes, rhs_axes)
        expected = sdy.interpret(module, lhs, rhs, groups)
        with capture():
            sdy.propagate(module)
            sdy.partition(module)
        np.testing.assert_array_equal(sdy.interpret(module, lhs, rhs, groups), expected, f"{lhs_axes} {rhs_axes}")


@pytest.mark.parametrize(("lhs", "rhs"), [(("x,y", ""), ("", "")), (("", "x"), ("x", "")), (("x", ""), ("", "y"))])
def test_devices_compute_and_receive_no_more_than_for_a_dot(lhs: tuple[str, str], rhs: tuple[str, str]) -> None:
    """Shards of rows, of columns and of the contracted dimension fit together; partial sums alone are exchanged."""
    module = program("free", lhs, rhs)
    with capture() as reported:
        sdy.propagate(module)
        sdy.partition(module)
    assert not reported
    (op,) = operations_of(module, RaggedDotOp)
    assert arithmetic_of(op).operations == 2 * 8 * 6 * 4 / (2 if "x" in rhs else 4)
    received = bytes_received(module)
    assert received == (8 * 4 * 4 if "x" in rhs else 0)


def test_masked_copies_as_cpus_compute_it_count_once() -> None:
    """JAX lowers `ragged_dot` for CPUs to a product with a masked copy of the factor for each group."""

    def loss(x: jax.Array, w: jax.Array, sizes: jax.Array) -> jax.Array:
        return jnp.sum(lax.ragged_dot(x, w, sizes) ** 2)

    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((64, 16), (4, 16, 8))]
    module = sdy.from_jax(jax.grad(loss, (0, 1)), *shapes, jax.ShapeDtypeStruct((4,), "int32"))
    assert [arithmetic_of(op).operations for op in operations_of(module, DotGeneralOp)] == [2 * 64 * 16 * 8] * 3
    whole = hardware_of("tpu-v5e")
    assert compute_seconds(module, replace(whole, overhead=0.0)) < 40 * 4 * 64 * 16 / whole.memory_bandwidth
