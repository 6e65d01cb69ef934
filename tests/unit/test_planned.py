"""`sdy.jit` where the compiler chooses how arguments are split."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import sdy

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
def test_what_is_chosen_computes_the_same_step_after_step(mesh: jax.sharding.Mesh) -> None:
    planned = sdy.jit(step, mesh=mesh, in_shardings=sdy.Auto("cpu-8", time_limit=10))
    params, x, y = arguments()
    ours, theirs = params, params
    for _ in range(2):
        ours, value = planned(ours, x, y)
        theirs, wanted = jax.jit(step)(theirs, x, y)
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), ours, theirs)
    plan = planned.plan(params, x, y)
    assert plan.mesh == sdy.Mesh.of({"data": 4, "model": 2})
    assert len(plan.rows) == 4


def test_types_alone_are_enough_for_a_plan() -> None:
    planned = sdy.jit(mesh=MESH, in_shardings=sdy.Auto("tpu-v5p", time_limit=10))(step)
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
    with pytest.raises(ValueError, match="say on which mesh shardings are to be chosen"):
        sdy.jit(step, in_shardings=sdy.AUTO)


def test_static_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="static_argnums: no arguments are static where shardings are chosen"):
        sdy.jit(step, mesh=MESH, in_shardings=sdy.AUTO, static_argnums=1)
