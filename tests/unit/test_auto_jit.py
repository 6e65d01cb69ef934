"""`sdy.jit` with automatic shardings of arguments."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from xdsl.ir import Operation

import sdy
from sdy.dialect.shardings import set_sharding

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
Params = dict[str, jax.Array]


def step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
    def loss(params: Params) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradient), value


def arguments() -> tuple[Params, jax.Array, jax.Array]:
    random = np.random.default_rng(0)

    def array(*shape: int) -> jax.Array:
        return jnp.asarray(random.standard_normal(shape), jnp.float32)

    return {"up": array(64, 256), "down": array(256, 64)}, array(4096, 64), array(4096, 64)


@pytest.mark.parametrize("mesh", [MESH, jax.make_mesh((4, 2), ("data", "model"))], ids=["auto", "explicit"])
def test_automatic_shardings_compute_the_same_steps(mesh: jax.sharding.Mesh) -> None:
    planned = sdy.jit(step, mesh=mesh, in_shardings=sdy.Auto("cpu-8"))
    params, x, y = arguments()
    ours, theirs = params, params
    for _ in range(2):
        ours, value = planned(ours, x, y)
        theirs, wanted = jax.jit(step)(theirs, x, y)
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), ours, theirs)
    plan = planned.plan(params, x, y)
    assert plan.mesh == sdy.Mesh.of({"data": 4, "model": 2})
    assert sum(len(row.arguments) for row in plan.rows) == 4


def test_types_alone_are_enough_for_a_plan() -> None:
    planned = sdy.jit(mesh=MESH, in_shardings=sdy.Auto("tpu-v5p"))(step)
    wide = jax.ShapeDtypeStruct((65536, 4096), "float32")
    params = {
        "up": jax.ShapeDtypeStruct((4096, 16384), "float32"),
        "down": jax.ShapeDtypeStruct((16384, 4096), "float32"),
    }
    plan = planned.plan(params, wide, wide)
    assert plan.cost.seconds < plan.others["replicated"].seconds / 6


def test_what_is_given_stays() -> None:
    given = {"up": PartitionSpec(None, "model"), "down": PartitionSpec("model")}
    planned = sdy.jit(step, mesh=MESH, in_shardings=(given, sdy.AUTO, sdy.AUTO))
    params, x, y = arguments()
    plan = planned.plan(params, x, y)
    assert {index for row in plan.rows for index in row.arguments} == {2, 3}
    assert "cpu" in plan.hardware.name.lower()
    results, _ = planned(params, x, y)
    assert results["up"].sharding.is_equivalent_to(NamedSharding(MESH, PartitionSpec(None, "model")), 2)


def test_a_mesh_is_needed() -> None:
    with pytest.raises(ValueError, match="automatic sharding requires a mesh"):
        sdy.jit(step, in_shardings=sdy.AUTO)


def test_another_mesh_in_the_function_is_an_error() -> None:
    """Without an automatic sharding, `sdy.jit` unifies meshes over the same devices."""
    rows, x = PartitionSpec("rows"), np.ones((8, 8), np.float32)
    line = jax.make_mesh((8,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    summed = jax.shard_map(lambda x: jax.lax.psum(x, "rows"), mesh=line, in_specs=rows, out_specs=PartitionSpec())
    told = r"the module has 2 meshes, but only one is supported: .* with data=4, model=2; .* with rows=8"
    with pytest.raises(sdy.DiagnosticError, match=told):
        sdy.jit(summed, mesh=MESH, in_shardings=sdy.AUTO)(x)
    np.testing.assert_array_equal(sdy.jit(summed, mesh=MESH)(x), np.full((1, 8), 8))


def test_unknown_devices_are_planned_as_others_with_a_warning() -> None:
    mesh = jax.sharding.AbstractMesh((8,), ("data",))
    told = r"the plan is for those of 'h100'; .*sdy\.Auto\(hardware='mine\.toml'\)"
    with pytest.warns(sdy.ShardingWarning, match=told):
        assert sdy.AUTO.hardware_for(mesh) == "h100"
    assert sdy.AUTO.hardware_for(MESH) == "cpu-8"


def scaled(params: Params, x: jax.Array, depth: int, *, scale: float = 1.0, name: str = "tanh") -> Any:
    for _ in range(depth):
        x = getattr(jnp, name)(x @ params["up"]) @ params["down"] * scale
    return params, x


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((1,), {"scale": 0.5}), ((), {"depth": 1, "name": "cos", "scale": 0.5})],
)
def test_static_and_keyword_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    auto = sdy.Auto("cpu-8")
    planned = sdy.jit(
        scaled, mesh=MESH, in_shardings=auto, static_argnums=2, static_argnames="name", donate_argnames="params"
    )
    params, x, _ = arguments()
    expected = np.asarray(scaled(params, x, *args, **kwargs)[1])
    np.testing.assert_allclose(planned(params, x, *args, **kwargs)[1], expected, rtol=2e-3, atol=1e-3)
    assert jax.tree.leaves(params)[0].is_deleted()


def test_a_donated_state_is_planned_as_updated_in_place() -> None:
    def append(cache: jax.Array, row: jax.Array, index: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(cache, row, (index, 0))

    args = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((1 << 16, 1 << 10), (1, 1 << 10))]
    index = jax.ShapeDtypeStruct((), "int32")
    kept, donated = (
        sdy.jit(append, mesh=MESH, in_shardings=sdy.Auto("cpu-8"), donate_argnums=numbers).plan(*args, index)
        for numbers in ((), 0)
    )
    assert donated.cost.seconds < kept.cost.seconds / 10


def product(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x @ w) * scale)


def product_arguments() -> tuple[jax.Array, jax.Array, jax.Array]:
    (params, x, _), scale = arguments(), jnp.float32(2.0)
    return x, params["up"], scale


def test_results_of_operations_are_split_as_chosen() -> None:
    whole = PartitionSpec()
    planned = sdy.jit(product, mesh=MESH, in_shardings=(whole, whole, sdy.Auto("cpu-8")))
    args = product_arguments()
    rows = planned.plan(*args).rows
    assert [(row.arguments, row.type) for row in rows] == [((), "tensor<4096x256xf32>")]
    assert "f32[4096,32]" in planned.lower(*args).compile().as_text()
    np.testing.assert_allclose(planned(*args), jax.jit(product)(*args), rtol=1e-4)


def test_shardings_of_results_are_applied_where_a_trace_has_dead_operations() -> None:
    def gradient(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
        return jax.grad(lambda scale: jnp.mean((jnp.tanh(x @ w) * scale) ** 2))(scale)

    whole = PartitionSpec()
    planned = sdy.jit(gradient, mesh=MESH, in_shardings=(whole, whole, sdy.Auto("cpu-8")))
    args = product_arguments()
    assert any(not row.arguments for row in planned.plan(*args).rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sdy.LostShardingWarning)
        assert "f32[4096,32]" in planned.lower(*args).compile().as_text()


def test_what_was_chosen_for_results_is_lost_in_a_larger_program() -> None:
    whole = PartitionSpec()
    planned = sdy.jit(product, mesh=MESH, in_shardings=(whole, whole, sdy.Auto("cpu-8")))
    args = product_arguments()

    def larger(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
        return planned(x, w, scale) + jnp.sum(jnp.cos(x))

    with pytest.warns(sdy.LostShardingWarning, match="the function is part of a larger program"):
        value = jax.jit(larger)(*args)
    np.testing.assert_allclose(value, jax.jit(product)(*args) + jnp.sum(jnp.cos(args[0])), rtol=1e-4)


def test_a_policy_counts_in_a_plan() -> None:
    def policy(operations: Sequence[Operation]) -> None:
        for op in operations:
            if op.name == "stablehlo.dot_general":
                set_sharding(op.results[0], sdy.Sharding.of("data", "model", mesh="mesh"))

    whole = PartitionSpec()
    auto = sdy.Auto("cpu-8")
    planned = sdy.jit(product, mesh=MESH, in_shardings=(whole, whole, auto), policy=policy)
    args = product_arguments()
    assert not planned.plan(*args).rows
    assert "f32[1024,128]" in planned.lower(*args).compile().as_text()
    np.testing.assert_allclose(planned(*args), jax.jit(product)(*args), rtol=1e-4)
