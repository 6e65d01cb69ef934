"""Constraints and collectives of helper functions are located at the lines that call the helpers."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import sdy
from lint_programs.planted import Planted, Written, tensor
from sdy.diagnostics import location_of
from sdy.dialect.ops import ShardingConstraintOp
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.constraint_helpers import at_call_lines
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.reducing_collectives import AllReduceOp


def keep(x: jax.Array, *spec: str | None) -> jax.Array:
    return lax.with_sharding_constraint(x, P(*spec))


def keep_rows(x: jax.Array) -> jax.Array:
    return keep(x, "data")


def keep_all(tree: Any) -> Any:
    return jax.tree.map(lambda each: lax.with_sharding_constraint(each, P("data")), tree)


def doubled(x: jax.Array) -> jax.Array:
    return lax.with_sharding_constraint(2 * x, P("data"))  # mistake


def directly(x: jax.Array) -> jax.Array:
    return jnp.tanh(lax.with_sharding_constraint(x, P("data")))  # mistake


def by_helper(x: jax.Array) -> jax.Array:
    return jnp.tanh(keep(x, "data"))  # mistake


def by_helper_of_helper(x: jax.Array) -> jax.Array:
    return jnp.tanh(keep_rows(x))  # mistake


def by_helper_of_trees(x: jax.Array) -> jax.Array:
    return jnp.tanh(keep_all({"x": x})["x"])  # mistake


def by_function_that_computes(x: jax.Array) -> jax.Array:
    return jnp.tanh(doubled(x))


def in_gradient(x: jax.Array) -> jax.Array:
    def loss(x: jax.Array) -> jax.Array:
        x = keep(x, "data")  # mistake
        return (jnp.tanh(x) * jnp.sin(x)).sum()

    return jax.grad(loss)(x)


STEPS: dict[Callable[..., Any], Callable[..., Any]] = {
    directly: directly,
    by_helper: by_helper,
    by_helper_of_helper: by_helper_of_helper,
    by_helper_of_trees: by_helper_of_trees,
    by_function_that_computes: doubled,
    in_gradient: in_gradient,
}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_constraints_of_helpers_are_at_the_lines_that_call_them(step: Callable[..., Any]) -> None:
    written = Written(step, (tensor(8, 8),))
    module = at_call_lines(sdy.from_jax(written.lowered()))
    constraints = operations_of(module, ShardingConstraintOp)
    places = {(place.filename, place.line) for op in constraints if (place := location_of(op))}
    assert places == {Planted("", "", written, written, STEPS[step]).line()}


def whole_rows(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "data", tiled=True)


def total(x: jax.Array) -> jax.Array:
    return lax.psum(x, "data")


def by_helpers_in_shard_map(x: jax.Array) -> jax.Array:
    def local(x: jax.Array) -> jax.Array:
        return jnp.tanh(total(whole_rows(x)))  # mistake

    return jax.shard_map(local, in_specs=P("data"), out_specs=P(), check_vma=False)(x)


def test_collectives_of_helpers_are_at_the_lines_that_call_them() -> None:
    written = Written(by_helpers_in_shard_map, (tensor(8, 8),))
    module = at_call_lines(sdy.from_jax(written.lowered()))
    collectives = operations_of(module, AllGatherOp, AllReduceOp)
    places = {(place.filename, place.line) for op in collectives if (place := location_of(op))}
    assert len(collectives) == 2
    assert places == {Planted("", "", written, written).line()}


def test_a_module_without_helpers_is_not_copied() -> None:
    module = sdy.from_jax(Written(directly, (tensor(8, 8),)).lowered())
    assert at_call_lines(module) is module
