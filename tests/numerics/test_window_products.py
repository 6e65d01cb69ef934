"""Windowed products: where they are computed in parts, with the results of one device, and where they must not be."""

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax

import sdy
from partitioned_programs import GRID, LINE, Argument, assert_same_as_whole, constrain, partitioned, program
from random_programs import random_program
from samples import covering
from sdy.ir.walking import operations_of
from sdy.passes.communication.window_products import WindowProductsPass, window
from sdy.passes.communication.windowed_products import windowed_products
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.text import context

MESHES = {"x": LINE, "data": GRID}
"""Meshes by the axis along which the products are split."""

Product = Callable[[jax.Array, jax.Array, str], Any]


def gathered(equation: str, operand: int) -> Product:
    """Return a product of an operand whose first dimension is gathered; the other one is split in its last one."""

    def product(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
        operands = [constrain(x, axis), constrain(w, None, axis)]
        operands[0] = constrain(operands[0])
        return jnp.einsum(equation, *(operands if operand == 0 else reversed(operands)))

    return product


def scattered(equation: str, dim: int) -> Product:
    """Return a product that sums over the split first dimensions, and whose result is split in dimension `dim`."""

    def product(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
        return constrain(jnp.einsum(equation, constrain(x, axis), constrain(w, axis)), *[None] * dim, axis)

    return product


def of_two_products(x: jax.Array, w: jax.Array, axis: str) -> Any:
    rows = constrain(constrain(x, axis))
    return constrain(rows @ w, None, axis), constrain(rows @ jnp.tanh(w), None, axis)


def read_by_others(x: jax.Array, w: jax.Array, axis: str) -> Any:
    rows = constrain(constrain(x, axis))
    return constrain(rows @ w, None, axis), constrain(jnp.cumsum(rows, axis=0), None)


def gathered_twice(x: jax.Array, w: jax.Array, axis: str) -> Any:
    return constrain(constrain(x, axis)) @ constrain(constrain(w, axis))


def in_a_loop(x: jax.Array, w: jax.Array, axis: str) -> Any:
    def step(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        hidden = constrain(constrain(constrain(x, axis)) @ w, None, axis)
        return constrain(jnp.tanh(hidden) @ constrain(w.T, axis), axis), None

    return lax.scan(step, x, jnp.stack([w, w / 2]))[0]


def mixed(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
    rows = constrain(constrain(x.astype(jnp.bfloat16), axis))
    return constrain(jnp.dot(rows, w.astype(jnp.bfloat16), preferred_element_type=jnp.float32), None, axis)


def narrow(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
    return (gathered("ki,kj->ij", 0)(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), axis)).astype(jnp.float32)


def maximum(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
    return constrain(jnp.max(constrain(x[:, :, None] * w[:, None, :], axis), axis=0), axis)


def scattered_and_read(x: jax.Array, w: jax.Array, axis: str) -> Any:
    total = jnp.einsum("ki,kj->ij", constrain(x, axis), constrain(w, axis))
    return constrain(total, axis), constrain(jnp.tanh(total), None, axis)


def with_itself(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
    rows = constrain(constrain(x, axis))
    return constrain(jnp.einsum("ik,jk->ij", rows, rows)) + w[0, 0]


def without_product(x: jax.Array, w: jax.Array, axis: str) -> jax.Array:
    return constrain(jnp.cumsum(constrain(constrain(x, axis)), axis=0)) + w[0, 0]


WINDOWED: dict[str, Product] = {
    "rows of lhs": gathered("ik,kj->ij", 0),
    "rows of rhs": gathered("kj,ik->ij", 1),
    "a sum over lhs": gathered("ki,kj->ij", 0),
    "a sum over rhs": gathered("kj,ki->ji", 1),
    "a batch": gathered("bi,bj->bij", 0),
    "scattered rows": scattered("ki,kj->ij", 0),
    "scattered columns": scattered("ki,kj->ij", 1),
    "two products": of_two_products,
    "read by others": read_by_others,
    "both operands": gathered_twice,
    "a loop": in_a_loop,
    "a wider result": mixed,
    "a narrow sum": narrow,
    "scattered, and read by others": scattered_and_read,
}

SUMMED = {"scattered rows", "scattered columns", "a maximum", "scattered, and read by others", "both operands"}
"""Products of operands that are both split in their first dimension; the second operand of others is in its last."""

KEPT: dict[str, Product] = {
    "a maximum": maximum,
    "a product with itself": with_itself,
    "no product": without_product,
}


def received_bytes(local: Any) -> float:
    """Return the bytes that a device receives."""
    return sum(each.bytes for each in sdy.account(local).received)


@covering
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("axis", MESHES)
@pytest.mark.parametrize("size", [24, 21], ids=["even", "uneven"])
@pytest.mark.parametrize("name", [*WINDOWED, *KEPT])
def test_results_are_those_of_one_device(name: str, size: int, axis: str, dtype: str) -> None:
    if dtype == "int32" and name in {"a loop", "a wider result", "a narrow sum"}:
        pytest.skip("floats")
    product = WINDOWED.get(name) or KEPT[name]
    axes = (axis,), ((axis,) if name in SUMMED else (None, axis))
    arguments = [Argument((24, 24), each, dtype) for each in axes]
    whole = program(
        lambda x, w: product(x[:size, :size], w[:size, :size], axis), *arguments, mesh=MESHES[axis]
    ).module()
    local = partitioned(whole)
    kinds = [each.kind for each in windowed_products(local)]
    if size == 24:
        assert bool(kinds) == (name in WINDOWED)
    before = received_bytes(local)
    window(local, kinds)
    local.verify()
    assert received_bytes(local) == before
    if size == 24 and name in WINDOWED:
        assert operations_of(local, CollectivePermuteOp)
    assert_same_as_whole(whole, local, 3e-2 if "wider" in name or "narrow" in name else 1e-5)


@given(st.randoms(use_true_random=False), st.integers(2, 8), st.integers(0, 2**31))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_random_programs_compute_the_same(choose: random.Random, num_operations: int, seed: int):
    case = random_program(choose, num_operations)
    whole = case.module()
    values = np.random.default_rng(seed)
    inputs = [values.integers(-9, 9, argument.shape, np.int32) for argument in case.arguments]
    local = partitioned(whole)
    window(local, [each.kind for each in windowed_products(local)])
    for result, expected in zip(sdy.interpret(local, *inputs), sdy.interpret(whole, *inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


def mlp(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Return an MLP with sequence parallelism: its operand is gathered, its result is scattered."""
    hidden = constrain(jax.nn.gelu(constrain(x) @ up), None, "x")
    return constrain(hidden @ down, "x")


@pytest.mark.parametrize(("rows", "is_windowed"), [(8192, True), (64, False)])
def test_pays_where_products_take_longer_than_messages(rows: int, is_windowed: bool) -> None:
    arguments = [
        Argument((rows, 8192), ("x",), "bfloat16"),
        Argument((8192, 32768), (None, "x"), "bfloat16"),
        Argument((32768, 8192), ("x",), "bfloat16"),
    ]
    local = partitioned(program(mlp, *arguments, mesh=LINE).module())
    WindowProductsPass().apply(context(), local)
    assert not operations_of(local, CollectivePermuteOp)
    WindowProductsPass("tpu-v5p").apply(context(), local)
    kinds = {type(each) for each in operations_of(local, *COLLECTIVES)}
    assert (kinds == {CollectivePermuteOp}) == is_windowed


def test_functions_of_jit_are_windowed_for_their_hardware() -> None:
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, columns = (jax.sharding.PartitionSpec(*axes) for axes in (("x",), (None, "x")))
    place = jax.sharding.NamedSharding
    arguments = [
        jax.ShapeDtypeStruct(shape, "bfloat16", sharding=place(mesh, spec))
        for shape, spec in [((8192, 8192), rows), ((8192, 32768), columns), ((32768, 8192), rows)]
    ]
    with jax.set_mesh(mesh):
        plain, windowed = (sdy.account(sdy.jit(mlp, hardware=name).lower(*arguments)) for name in (None, "tpu-v5p"))
    assert {each.collective for each in windowed.received} == {"collective-permute"}
    assert {each.collective for each in plain.received} == {"all-gather", "reduce-scatter"}
