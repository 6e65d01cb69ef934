"""A suggested constraint does to a program what the line of Python does, in its gradient too."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from xdsl.ir import OpResult, SSAValue

import sdy
from lint_programs.mistake import EIGHT, descend
from lint_programs.planted import Written, tensor
from sdy.axes import AxisRef
from sdy.diagnostics import capture, location_of
from sdy.dialect.ops import ShardingConstraintOp
from sdy.ir.walking import operations, operations_of
from sdy.passes.account.lint.body_edits import AddConstraint, Results, computes_gradient
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.written import WrittenProgram
from sdy.passes.account.partitioned_program import program_of
from sdy.passes.common.call_graph import main_function
from sdy.stablehlo.elementwise import TanhOp

Keep = Callable[[jax.Array], jax.Array]


def straight(keep: Keep) -> Callable[..., jax.Array]:
    def loss(params: Any, x: jax.Array) -> jax.Array:
        h = keep(jnp.tanh(x @ params["up"]))
        return jnp.mean((h @ params["down"]) ** 2)

    return loss


def used_twice(keep: Keep) -> Callable[..., jax.Array]:
    def loss(params: Any, x: jax.Array) -> jax.Array:
        h = keep(jnp.tanh(x @ params["up"]))
        h = jnp.sin(h) + h
        return jnp.mean((h @ params["down"]) ** 2)

    return loss


def in_loop(keep: Keep) -> Callable[..., jax.Array]:
    def loss(params: Any, x: jax.Array) -> jax.Array:
        def turn(x: jax.Array, _: None) -> tuple[jax.Array, None]:
            h = keep(jnp.tanh(x @ params["up"]))
            return h @ params["down"], None

        return jnp.mean(lax.scan(turn, x, None, length=4)[0] ** 2)

    return loss


def recomputed(keep: Keep) -> Callable[..., jax.Array]:
    def loss(params: Any, x: jax.Array) -> jax.Array:
        @jax.checkpoint
        def layer(x: jax.Array) -> jax.Array:
            h = keep(jnp.tanh(x @ params["up"]))
            return jnp.sin(h @ params["down"])

        return jnp.mean(layer(x) ** 2)

    return loss


def written(loss: Callable[..., jax.Array]) -> WrittenProgram:
    params = {"up": tensor(256, 1024, split=P()), "down": tensor(1024, 256, split=P())}
    program = Written(descend(loss), (params, tensor(2048, 256, split=P("data"))), mesh=EIGHT)
    found = WrittenProgram.of(program_of(program.lowered()))
    assert found is not None
    return found


def tanh_of(program: WrittenProgram) -> SSAValue:
    return next(op.result for op in operations_of(program.module, TanhOp))


@pytest.mark.parametrize("model", [straight, used_twice, in_loop, recomputed])
def test_constraint_is_that_of_the_line_of_python(model: Callable[[Keep], Callable[..., jax.Array]]) -> None:
    spec = P(None, "data")
    by_hand = written(model(lambda x: lax.with_sharding_constraint(x, spec)))
    without = written(model(lambda x: x))
    results = Results.of(tanh_of(without))
    assert results is not None
    by_edit = without.with_cure(Cure((AddConstraint(results, ((), (AxisRef("data"),))),)))
    assert by_edit is not None
    mains = (main_function(each.module) for each in (by_hand, by_edit))
    constraints = [len(operations_of(main, ShardingConstraintOp)) for main in mains]
    assert constraints[0] == constraints[1] > 1
    with capture():
        expected, found = (sdy.account(each.module).bytes_received for each in (by_hand, by_edit))
    assert found == expected


def test_gradient_that_is_not_identified_is_stated() -> None:
    program = written(straight(lambda x: x))
    value = tanh_of(program)
    results = Results.of(value)
    assert results is not None
    of_line = [op for op in operations(program.module) if location_of(op) == results.where and computes_gradient(op)]
    assert [type(each) for each in results.gradients(of_line)] == [OpResult]
    assert "not for their gradients" in AddConstraint(results, ((), ()), lacks_gradient=True).text
    assert "not for their gradients" not in AddConstraint(results, ((), ())).text


def test_no_constraint_is_suggested_on_a_gradient() -> None:
    program = written(straight(lambda x: x))
    gradients = [op for op in operations(program.module) if computes_gradient(op) and op.results]
    assert gradients
    assert not any(Results.of(result) for op in gradients for result in op.results)
