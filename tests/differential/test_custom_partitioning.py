"""Operations of `jax.experimental.custom_partitioning`, which Python functions partition."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import sdy
from gspmd_in_jax import lowering_for_gspmd
from sdy.passes.jax.device_mesh import mesh_name
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SPLIT = NamedSharding(MESH, P("data", "model"))
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
W = np.cos(X)


Partitioned = tuple[Any, Function[Any], Any, Any]
"""A mesh, the function of each device, and the shardings of the result and of the arguments."""


def product(told: list[Any]) -> Any:
    """Return a matrix product partitioned by rows, with the contracted dimension replicated."""

    @custom_partitioning
    def multiply(x: Any, w: Any) -> Any:
        return x @ w

    def partition(mesh: Any, arguments: Any, result: Any) -> Partitioned:
        told.append([array.sharding.spec for array in (*arguments, result)])
        rows = arguments[0].sharding.spec[0]
        of_rows, whole = NamedSharding(mesh, P(rows, None)), NamedSharding(mesh, P())
        return mesh, lambda x, w: x @ w, of_rows, (of_rows, whole)

    multiply.def_partition(partition=partition, sharding_rule="i k, k j -> i j")
    return multiply


def test_partition_callback_receives_the_same_shardings_as_in_jax():
    told: list[Any] = []
    multiply = product(told)

    def program(x: Any, w: Any) -> Any:
        return jnp.sin(multiply(x, w)) + 1

    results = [jit(program, in_shardings=(SPLIT, None))(X, W) for jit in (jax.jit, sdy.jit)]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)
    assert told[0] == told[1] == [P("data", "model"), P("model", None), P("data", None)]


def test_partition_callback_is_called_under_sdy_compiler():
    told: list[Any] = []
    with sdy.compiler(mesh=MESH):
        result = jax.jit(product(told))(jax.device_put(X, SPLIT), W)
    np.testing.assert_allclose(result, X @ W, rtol=1e-4, atol=1e-6)
    assert len(told) == 1


def both(jit: Callable[..., Any]) -> Any:
    @custom_partitioning
    def scaled(scale: float, arrays: Any) -> Any:
        total = scale * arrays["x"].sum()
        return {"centred": arrays["x"] - total, "total": total}

    def partition(scale: float, mesh: Any, arguments: Any, result: Any) -> Any:
        (arrays,) = arguments
        rows = NamedSharding(mesh, P(arrays["x"].sharding.spec[0], None))

        def on_device(arrays: Any) -> Any:
            total = scale * jax.lax.psum(arrays["x"].sum(), rows.spec[0])
            return {"centred": arrays["x"] - total, "total": total}

        return mesh, on_device, {"centred": rows, "total": NamedSharding(mesh, P())}, ({"x": rows},)

    scaled = custom_partitioning(scaled.fun, static_argnums=(0,))
    scaled.def_partition(partition=partition, sharding_rule="i j -> i j, ")

    def program(x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            found = scaled(0.5, {"x": x})
            return jnp.tanh(found["centred"]), found["total"]

        return jax.lax.scan(step, x, None, length=3)

    return jit(program, in_shardings=SPLIT)(X)


def test_trees_static_arguments_and_collectives_are_as_in_jax():
    for given, expected in zip(both(sdy.jit), both(jax.jit), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-5)


def refused(partition: Function[Any]) -> str:
    wrong = custom_partitioning(lambda x: x + 1)
    wrong.def_partition(partition=partition, sharding_rule="i j -> i j")
    with pytest.raises(sdy.DiagnosticError) as raised:
        sdy.jit(lambda x: wrong(x), in_shardings=SPLIT)(X)
    return str(raised.value)


def test_wrong_partition_function_is_reported_with_its_location():
    other = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

    def of_another_mesh(mesh: Any, arguments: Any, result: Any) -> Partitioned:
        return other, lambda x: x, NamedSharding(other, P("x")), (NamedSharding(other, P("x")),)

    def of_another_size(mesh: Any, arguments: Any, result: Any) -> Partitioned:
        whole = NamedSharding(mesh, P())
        return mesh, lambda x: x[:2], whole, (whole,)

    message = refused(of_another_mesh)
    assert "is partitioned for a mesh with the axes {'x': 8}, which is not the program's" in message
    assert "test_custom_partitioning.py" in message
    assert "into a function that returns tensor<2x8xf32>, not tensor<8x8xf32>" in refused(of_another_size)


def elementwise(function: Function[Any], rule: str) -> Any:
    """Return an elementwise operation partitioned like its first argument."""

    def partition(mesh: Any, arguments: Any, result: Any) -> Partitioned:
        return mesh, function, arguments[0].sharding, tuple(arguments[0].sharding for _ in arguments)

    operation = custom_partitioning(function)
    operation.def_partition(partition=partition, sharding_rule=rule)
    return operation


def sine() -> Any:
    """Return a sine with custom partitioning, whose gradient has custom partitioning too."""
    forward = elementwise(jnp.sin, "i j -> i j")
    backward = elementwise(lambda x, gradient: jnp.cos(x) * gradient, "i j, i j -> i j")
    differentiable = jax.custom_vjp(forward)
    differentiable.defvjp(lambda x: (forward(x), x), lambda x, gradient: (backward(x, gradient),))
    return differentiable


def test_gradients_are_as_in_jax():
    gradient = jax.grad(lambda x: (sine()(x) ** 2).sum())
    expected, given = (jit(gradient, in_shardings=SPLIT)(X) for jit in (jax.jit, sdy.jit))
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    assert given.sharding.spec == expected.sharding.spec == P("data", "model")


def product_by_callbacks(told: list[Any]) -> Any:
    """Return the product with an `infer_sharding_from_operands` callback instead of a sharding rule."""
    multiply: Any = custom_partitioning(lambda x, w: {"product": x @ w, "rows": jnp.arange(x.shape[0])})

    def infer(mesh: Any, arguments: Any, result: Any) -> Any:
        rows = arguments[0].sharding.spec[0]
        assert result["product"].shape == (8, 8)
        return {"product": NamedSharding(mesh, P(rows, None)), "rows": NamedSharding(mesh, P(None))}

    def partition(mesh: Any, arguments: Any, result: Any) -> Partitioned:
        told.append([array.sharding.spec for array in (*arguments, result["product"], result["rows"])])
        given, whole = result["product"].sharding, NamedSharding(mesh, P())
        computed = {"product": given, "rows": whole}
        return mesh, lambda x, w: {"product": x @ w, "rows": jnp.arange(8)}, computed, (given, whole)

    multiply.def_partition(partition=partition, infer_sharding_from_operands=infer)
    return multiply


def test_infer_sharding_callbacks_are_called_when_jax_lowers_for_gspmd():
    if not hasattr(jax.config, "jax_use_shardy_partitioner"):
        pytest.skip("this jax has no GSPMD")
    told: list[Any] = []
    multiply = product_by_callbacks(told)
    with lowering_for_gspmd():
        run = sdy.jit(lambda x, w: jnp.sin(multiply(jnp.cos(x), w)["product"]), in_shardings=(SPLIT, None))
        result = run(X, W)
    np.testing.assert_allclose(result, np.sin(np.cos(X) @ W), rtol=1e-4, atol=1e-6)
    assert result.sharding.spec == P("data")
    assert told == [[P("data", "model"), P(None, None), P("data", None), P(None)]]


def test_what_a_callback_says_is_of_a_mesh():
    if not hasattr(jax.config, "jax_use_shardy_partitioner"):
        pytest.skip("this jax has no GSPMD")
    single: Any = custom_partitioning(lambda x: x + 1)

    def infer(mesh: Any, arguments: Any, result: Any) -> Any:
        return SingleDeviceSharding(jax.devices()[0])

    single.def_partition(partition=infer, infer_sharding_from_operands=infer)
    with lowering_for_gspmd(), pytest.raises(sdy.DiagnosticError, match="has the inferred sharding Single"):
        sdy.jit(single, in_shardings=SPLIT)(X)


@pytest.mark.parametrize("jit", [jax.jit, sdy.jit])
def test_infer_sharding_callbacks_are_refused_as_by_jax(jit: Callable[..., Any]):
    older: Any = custom_partitioning(jnp.sin)

    def infer(mesh: Any, arguments: Any, result: Any) -> Any:
        return arguments[0].sharding

    def partition(mesh: Any, arguments: Any, result: Any) -> Partitioned:
        return mesh, jnp.sin, result.sharding, (result.sharding,)

    older.def_partition(partition=partition, infer_sharding_from_operands=infer)
    with pytest.raises(NotImplementedError, match="Need to provide sharding_rule to migrate to Shardy"):
        jit(older, in_shardings=SPLIT)(X)


def test_a_mesh_is_found_by_its_axes_and_its_order_of_devices():
    module = sdy.parse('sdy.mesh @reversed = <["x"=2], device_ids=[1, 0]>\nsdy.mesh @mesh = <["x"=2]>')
    devices = jax.devices()[:2]
    for order, name in ((devices, "mesh"), (devices[::-1], "reversed")):
        assert mesh_name(module, jax.sharding.Mesh(np.array(order), "x"), devices) == name
    assert mesh_name(module, jax.sharding.Mesh(np.array(devices), "y"), devices) is None
