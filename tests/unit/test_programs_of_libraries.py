"""`sdy.account`, `sdy.lint`, `sdy.report`, `sdy.explain` and `sdy.diff` on what Equinox and Flax jit, lower and run."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def of_equinox() -> tuple[Any, tuple[Any, ...]]:
    def apply(model: Any, x: jax.Array) -> jax.Array:
        return constrained(jax.vmap(model)(x))

    return eqx.filter_jit(apply), (eqx.nn.MLP(32, 32, 64, 2, key=jax.random.key(0)), jnp.ones((16, 32)))


def of_flax() -> tuple[Any, tuple[Any, ...]]:
    def apply(model: Any, x: jax.Array) -> jax.Array:
        return constrained(model(x))

    return nnx.jit(apply), (nnx.Linear(32, 32, rngs=nnx.Rngs(0)), jnp.ones((16, 32)))


def constrained(x: jax.Array) -> jax.Array:
    """Split the rows of a value, then replicate it."""
    rows = jax.lax.with_sharding_constraint(x, NamedSharding(MESH, PartitionSpec("x")))
    return jax.lax.with_sharding_constraint(jnp.tanh(rows), NamedSharding(MESH, PartitionSpec()))


@pytest.mark.parametrize("of_library", [of_equinox, of_flax])
def test_jitted_and_lowered_programs(of_library: Callable[[], tuple[Any, tuple[Any, ...]]]) -> None:
    step, arguments = of_library()
    of_function = sdy.account(step, *arguments)
    of_lowered = sdy.account(step.lower(*arguments))
    assert of_function.bytes_received == of_lowered.bytes_received == 16 * 32 * 4 * 7 / 8
    (received,) = of_function.received
    assert "test_programs_of_libraries.py" in str(received)
    assert not sdy.lint(step, *arguments)
    assert "test_programs_of_libraries.py" in sdy.report(step.lower(*arguments)).html


@pytest.mark.parametrize("of_library", [of_equinox, of_flax])
def test_programs_that_run_in_a_block(of_library: Callable[[], tuple[Any, tuple[Any, ...]]]) -> None:
    step, arguments = of_library()
    with sdy.compiler() as compiler:
        step(*arguments)
    (program,) = (each for each in compiler.programs if each.name == "apply")
    assert program.source is not None
    assert program.source.filename == __file__
    assert str(program) == f"<apply, compiled at {program.source}>"
    account = sdy.account(program)
    assert account.compiled is not None
    assert account.bytes_received == account.compiled.bytes_received == 16 * 32 * 4 * 7 / 8
    assert not sdy.lint(program)
    assert "test_programs_of_libraries.py" in sdy.report(program).html
    assert 'axis "x"' in str(sdy.explain(program, "%0"))
    assert "sdy.sharding_constraint" in str(program.lowered)
    assert not sdy.diff(program, program)


def test_programs_of_nested_blocks() -> None:
    x = jax.device_put(jnp.ones((16, 32)), NamedSharding(MESH, PartitionSpec("x")))
    with sdy.compiler() as outer:
        with sdy.compiler(compare_layouts=False) as inner:
            jax.jit(lambda x: constrained(x + 1))(x)
        jax.jit(lambda x: constrained(x + 2))(x)
    assert [each.name for each in inner.programs] == ["<lambda>"]
    assert [each.name for each in outer.programs] == ["<lambda>", "<lambda>"]


@pytest.mark.parametrize("of_library", [of_equinox, of_flax])
def test_values_are_explained_by_name(of_library: Callable[[], tuple[Any, tuple[Any, ...]]]) -> None:
    step, arguments = of_library()
    assert "%0" in str(sdy.explain(step, "%0", *arguments))
    assert "%0" in str(sdy.explain(step.lower(*arguments), "%0"))


def test_arguments_have_their_path_in_the_model() -> None:
    names = {}
    for of_library in (of_equinox, of_flax):
        step, arguments = of_library()
        main = main_function(sdy.from_jax(step, *arguments))
        names[of_library] = {given_name(argument) for argument in main.args}
    assert names[of_flax] == {"model.bias", "model.kernel", "x"}
    layers = {f"model.layers[{index}].{part}" for index in range(3) for part in ("weight", "bias")}
    assert names[of_equinox] == {*layers, "x"}


def of_jax() -> tuple[Any, tuple[Any, ...]]:
    return jax.jit(lambda scale, x: constrained(x * scale)), (jnp.ones((32,)), jnp.ones((16, 32)))


def of_sdy() -> tuple[Any, tuple[Any, ...]]:
    return sdy.jit(lambda scale, x: constrained(x * scale)), (jnp.ones((32,)), jnp.ones((16, 32)))


BINDINGS: list[tuple[Callable[[], tuple[Any, tuple[Any, ...]]], Callable[..., Any]]] = [
    (of_flax, partial),
    (of_flax, nnx.cached_partial),
    (of_equinox, partial),
    (of_equinox, eqx.Partial),
    (of_jax, partial),
    (of_jax, vars(jax.tree_util)["Partial"]),
    (of_sdy, partial),
]


@pytest.mark.parametrize(("of_library", "bind"), BINDINGS)
def test_bound_arguments_are_arguments_of_the_program(
    of_library: Callable[[], tuple[Any, tuple[Any, ...]]], bind: Callable[..., Any]
) -> None:
    step, (model, x) = of_library()
    bound = bind(step, model)
    assert sdy.format(sdy.from_jax(bound, x)) == sdy.format(sdy.from_jax(step, *of_library()[1]))
    assert sdy.account(bound, x).bytes_received == 16 * 32 * 4 * 7 / 8
    assert not sdy.lint(partial(bound, x=x))
    assert bound(x).shape == x.shape
