"""Priorities of state in the search for layouts."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from xdsl.rewriter import InsertPoint

import sdy
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.ops import MeshOp
from sdy.ir.editing import insert
from sdy.passes.auto.auto import prepared
from sdy.passes.auto.choices import find_choices, with_priority
from sdy.passes.auto.estimate import Estimator
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.limits import Limits
from sdy.passes.auto.search import Search
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.sharding import TensorSharding


def test_search_changes_the_priority_of_all_state_together() -> None:
    """Experts are sharded over the axis of the batch, and their hidden units as well: all or none are gathered."""

    def experts(x: jax.Array, w: Any) -> jax.Array:
        gates = jax.nn.softmax(x @ w["router"])
        chosen = jax.nn.one_hot(jnp.argmax(gates, -1), 8)
        place = jnp.cumsum(chosen, 1) * chosen - 1
        mask = jax.nn.one_hot(place.astype("int32"), 8) * chosen[..., None]
        hidden = jax.nn.gelu(jnp.einsum("ebcw,ewh->ebch", jnp.einsum("bsec,bsw->ebcw", mask, x), w["up"]))
        return jnp.einsum("bsec,ebcw->bsw", mask, jnp.einsum("ebch,ehw->ebcw", hidden, w["down"]))

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for w in params:
            x = x + experts(x * w["norm"], w)
        return jnp.mean(jnp.square(x - y))

    def step(params: Any, momentum: Any, x: jax.Array, y: jax.Array) -> Any:
        momentum = jax.tree.map(lambda old, new: 0.9 * old + new, momentum, jax.grad(loss)(params, x, y))
        return jax.tree.map(lambda old, new: old - 0.1 * new, params, momentum), momentum

    def array(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, "float32")

    layer = {"norm": array(64), "router": array(64, 8), "up": array(8, 64, 256), "down": array(8, 256, 64)}
    batch = array(8, 32, 64)
    module = sdy.from_jax(step, [layer], [layer], batch, batch)
    mesh = sdy.Mesh.of({"data": 4, "model": 2})
    insert(MeshOp("mesh", mesh), InsertPoint.at_start(module.body.block))
    program = fold(prepared(module))
    choices = find_choices(program, "mesh", mesh)
    search = Search(Estimator(program, "mesh", hardware_of("cpu-8")), choices, (), math.inf, Limits(), lambda _: None)
    dims: dict[tuple[int, ...], str] = {
        (8, 64, 256): '[{"data"}, {}, {"model"}]',
        (8, 256, 64): '[{"data"}, {"model"}, {}]',
        (64, 8): '[{"model"}, {}]',
        (64,): '[{"model"}]',
        (8, 32, 64): '[{"model"}, {}, {}]',
    }

    def layout(priority: int | None) -> dict[int, TensorSharding]:
        wanted = ((each, dims[each.shape], priority if each.is_state else None) for each in choices)
        return {
            each.node: with_priority(next(o for o in each.options if format_dims(o) == text), priority)
            for each, text, priority in wanted
        }

    alone, as_data = (search.candidate("experts", layout(priority)) for priority in (1, None))
    assert as_data.cost.seconds < 0.96 * alone.cost.seconds
    assert search.best_priority([alone]).cost == as_data.cost
    assert search.best_priority([as_data]).cost == as_data.cost
