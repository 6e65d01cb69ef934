"""Programs saved by `jax.export`: exported with `jax.jit` and called by `sdy.jit`, or exported with `sdy.jit`."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.ir import Operation

import sdy
from gspmd_in_jax import lowering_for_gspmd
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SPLIT = NamedSharding(MESH, P("data", "model"))
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)


def program(x: Any, scale: Any) -> Any:
    product = jax.lax.with_sharding_constraint(jnp.tanh(x @ x.T), NamedSharding(MESH, P("model")))
    return {"product": scale * product}


@pytest.mark.parametrize("by", [jax.jit, sdy.jit])
@pytest.mark.parametrize("calling", [jax.jit, sdy.jit])
def test_exports_of_one_compiler_are_called_by_the_other(
    by: Callable[..., Any], calling: Callable[[Function[Any]], Any]
):
    exported = export.export(by(program, in_shardings=(SPLIT, None)))(X, 2.0)
    assert exported.nr_devices == 8
    assert [(aval.shape, aval.dtype) for aval in exported.in_avals] == [(X.shape, X.dtype), ((), X.dtype)]
    x = jax.device_put(X, SPLIT)
    expected = program(x, 2.0)["product"]
    result = calling(lambda x: exported.call(x, 2.0)["product"] + 1)(x)
    np.testing.assert_allclose(result, expected + 1, rtol=1e-5)
    assert result.sharding.spec == P("model")


def test_export_for_gspmd_can_be_called():
    """The sharding constraints are kept, and no warning reports a replicated operation."""
    pytest.importorskip("flatbuffers")
    if not hasattr(jax.config, "jax_use_shardy_partitioner"):
        pytest.skip("this jax has no GSPMD")
    with lowering_for_gspmd():
        exported = export.export(jax.jit(program, in_shardings=(SPLIT, None)))(X, 2.0)
        saved = exported.serialize()
    called = export.deserialize(bytearray(saved))
    with warnings.catch_warnings(category=sdy.ShardingWarning, action="error"):
        result = sdy.jit(lambda x: called.call(x, 2.0)["product"] + 1, in_shardings=SPLIT)(X)
    np.testing.assert_allclose(result, program(X, 2.0)["product"] + 1, rtol=1e-5)
    assert result.sharding.spec == P("model")


def test_export_serializes_with_its_derivative():
    pytest.importorskip("flatbuffers")
    exported = export.export(sdy.jit(program, in_shardings=(SPLIT, None)))(X, 2.0)
    exported = export.deserialize(bytearray(exported.serialize(vjp_order=1)))

    def derivative(run: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        return jax.value_and_grad(lambda x: run(x, 2.0)["product"].sum())(jax.device_put(X, SPLIT))

    given, expected = derivative(exported.call), derivative(program)
    for ours, wanted in zip(given, expected, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4)


@pytest.mark.parametrize("given", [{"mesh": MESH}, {}])
def test_export_with_symbolic_sizes_is_called_with_concrete_ones(given: dict[str, Any]):
    pytest.importorskip("flatbuffers")
    (size,) = export.symbolic_shape("size")
    exported = export.export(jax.jit(lambda x: jnp.tanh(x @ x.T)))(jax.ShapeDtypeStruct((size, 4), np.float32))
    saved = export.deserialize(bytearray(exported.serialize()))
    x = jax.device_put(X, SPLIT)
    result = sdy.jit(lambda x: saved.call(2 * x) + 1, **given)(x)
    np.testing.assert_allclose(result, jax.jit(lambda x: saved.call(2 * x) + 1)(x), rtol=1e-5)
    assert len(result.sharding.device_set) == 8


def rows_split(operations: Sequence[Operation]) -> None:
    for op in operations:
        if op.name == "stablehlo.dot_general":
            sdy.split(op, operand=0, dim=0, axis="data")


def test_export_applies_the_policy():
    run = sdy.jit(lambda x: x @ x.T, mesh=MESH, policy=rows_split)
    text = export.export(run)(X).mlir_module()
    assert "stablehlo.dot_general" in text
    assert "-> tensor<2x8xf32>" in text


def test_unsupported_exports_are_reported():
    run = sdy.jit(jnp.sin, policy=rows_split)
    with pytest.warns(UserWarning, match=r"jax\.jit does not export the policy of an sdy\.jit function"):
        export.export(jax.jit(lambda x: run(x)))(X)
    (size,) = export.symbolic_shape("size")
    with pytest.raises(ValueError, match=r"for shapes that are known: export jax\.jit of the function"):
        export.export(run)(jax.ShapeDtypeStruct((size,), np.float32))
    with pytest.raises(ValueError, match="one platform at a time, not for cpu, cuda"):
        export.export(run, platforms=("cpu", "cuda"))(X)
