"""Keywords of `sdy.lint`, `sdy.account` and others that are neither options nor arguments are errors."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import sdy

X = jnp.ones((4, 4))


def step(w: jax.Array, x: jax.Array, *, scale: float = 1.0) -> jax.Array:
    return w @ x * scale


def step_of_batch(w: jax.Array, **batch: jax.Array) -> jax.Array:
    return w @ batch["x"]


MODULE = sdy.from_jax(step, X, X)
PROGRAMS: dict[str, Any] = {"function": step, "jax.jit": jax.jit(step), "sdy.jit": sdy.jit(step)}
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "an option of LintOptions": (lambda: sdy.lint(step, X, X, large="16K"), "sdy.LintOptions(large=...)?"),
    "a misspelled option": (lambda: sdy.account(step, X, X, undr="jax.jit"), "Did you mean under=...?"),
    "an option of another function": (
        lambda: sdy.account(step, X, X, hardware="h100"),
        "account() has the option under",
    ),
    "a report's option": (lambda: sdy.report(step, X, X, hardwar="h100"), "Did you mean hardware=...?"),
    "no options": (lambda: sdy.explain(step, "%0", X, X, depth=1), "explain() has no options"),
    "a difference": (lambda: sdy.diff(step, step, X, X, under="jax.jit"), "diff() got an unexpected keyword"),
    "any keyword": (lambda: sdy.account(step_of_batch, X, x=X, unde="jax.jit"), "Did you mean under=...?"),
    "a module": (lambda: sdy.lint(MODULE, select=["late-cast"]), "sdy.LintOptions(select=...)?"),
    "a golden layout": (
        lambda: sdy.check_golden("step.json", step, X, X, update=True),
        "check_golden() has no options",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_unknown_keywords_are_errors_that_name_the_options(name: str) -> None:
    call, problem = WRONG[name]
    with pytest.raises(TypeError, match="got an unexpected keyword argument") as caught:
        call()
    assert problem in str(caught.value)


@pytest.mark.parametrize("program", PROGRAMS)
def test_keywords_of_the_function_are_its_arguments(program: str) -> None:
    assert sdy.account(PROGRAMS[program], X, x=X).memory
    assert sdy.lint(PROGRAMS[program], w=X, x=X).summary == "no findings"


def test_a_function_that_takes_any_keyword_gets_those_that_are_not_like_an_option() -> None:
    assert sdy.account(step_of_batch, X, x=X).memory


def test_a_program_without_shardings_gets_a_hint() -> None:
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    sharded = jax.ShapeDtypeStruct((4, 4), "float32", sharding=sharding)
    hint = 'pass arguments with shardings, such as jax.device_put(x, NamedSharding(mesh, P("data")))'
    for has_hint, x in ((True, X), (False, sharded)):
        assert (hint in str(sdy.account(step, X, x))) == has_hint
        assert (hint in str(sdy.lint(step, X, x))) == has_hint
        assert any(hint in note for note in sdy.report(step, X, x).data["notes"]) == has_hint
