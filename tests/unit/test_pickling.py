"""Copies and pickles of the results that users keep: accounts, plans, specs, findings, and of modules."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
ROWS = NamedSharding(MESH, PartitionSpec("x"))
ARGUMENTS = (jax.ShapeDtypeStruct((16, 64), jnp.float32), jax.ShapeDtypeStruct((64, 4096), jnp.float32))


def step(x: jax.Array, w: jax.Array) -> jax.Array:
    whole = jax.lax.with_sharding_constraint(jnp.sin(x @ w), NamedSharding(MESH, PartitionSpec()))
    return jnp.cos(whole).sum()


JITTED = sdy.jit(step, in_shardings=(ROWS, None))


def module() -> Any:
    return sdy.from_jax(JITTED, *ARGUMENTS)


def propagated() -> Any:
    propagated = module()
    sdy.propagate(propagated)
    return propagated


def plan() -> Any:
    return sdy.auto(sdy.from_jax(jax.jit(jnp.dot), *ARGUMENTS), mesh=MESH)


STAGE = sdy.mpmd.StageCost(1.0, 2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sdy.account(JITTED, *ARGUMENTS, under="jax.jit"),
        lambda: sdy.account(propagated()),
        lambda: sdy.specs(JITTED, *ARGUMENTS),
        lambda: sdy.lint(JITTED, *ARGUMENTS),
        lambda: sdy.report(JITTED, *ARGUMENTS),
        lambda: sdy.explain(JITTED, "%0", *ARGUMENTS),
        lambda: sdy.diff(JITTED.lower(*ARGUMENTS), module()),
        lambda: sdy.mpmd.predict([STAGE] * 2, 4),
        plan,
        lambda: plan().specs(),
        lambda: plan().with_({}),
        module,
        propagated,
    ],
)
def test_results_are_copied_and_pickled(make: Callable[[], Any]) -> None:
    result = make()
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert type(again) is type(result)
        assert str(again) == str(result)


def test_a_pickled_account_has_the_compiled_costs() -> None:
    account = sdy.account(JITTED, *ARGUMENTS)
    compiled = pickle.loads(pickle.dumps(account)).compiled
    assert compiled.bytes_received == account.bytes_received > 0
    assert [(each.id, each.device_kind) for each in compiled.devices] == [
        (each.id, each.device_kind) for each in MESH.devices.flat
    ]


def test_copies_keep_what_pickles_leave_out() -> None:
    again = copy.deepcopy(plan())
    assert again.specs().arguments
    assert again.with_({}).changed
    with pytest.raises(RuntimeError, match="another process made the plan"):
        pickle.loads(pickle.dumps(again)).specs()
    specs = pickle.loads(pickle.dumps(sdy.specs(JITTED, *ARGUMENTS)))
    with pytest.raises(RuntimeError, match="another process made the specs"):
        specs.checkpoint_policy()
    original = propagated()
    assert str(sdy.explain(copy.deepcopy(original), "%0")) == str(sdy.explain(original, "%0"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: JITTED.trace(*ARGUMENTS),
        lambda: JITTED.lower(*ARGUMENTS),
        lambda: JITTED.lower(*ARGUMENTS).compile(),
        lambda: sdy.compile(propagated()),
    ],
)
def test_programs_are_pickled_as_text(make: Callable[[], Any]) -> None:
    program = make()
    assert copy.deepcopy(program) is program
    with pytest.raises(TypeError, match=r"a program is pickled as text, sdy.format\(module\)"):
        pickle.dumps(program)
