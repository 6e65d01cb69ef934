"""Entry points called in `jax.set_mesh` of a mesh with explicit axes, which the compiler's own meshes lack."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.ir import Operation

import sdy
from samples import covering
from sdy.passes.jax.api.compile import compile_unpartitioned

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
MESHES = {
    " ".join(kind.name for kind in kinds): jax.make_mesh(
        (2, 2), ("p", "q"), axis_types=kinds, devices=jax.devices()[:4]
    )
    for kinds in ((EXPLICIT, EXPLICIT), (EXPLICIT, AUTO))
}
V = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)


def function(x: jax.Array) -> jax.Array:
    return jnp.tanh(x) * 2 + 1


@sdy.register_op("a b^ -> a b^", name="softmax_in_context")
def softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, axis=1)


@sdy.register_op("a b -> a b", name="told_in_context")
def told(x: jax.Array) -> jax.Array:
    jax.debug.callback(lambda _: None, x)
    return jnp.tanh(x) * 2 + 1


def swap(x: jax.Array) -> jax.Array:
    return x.T


transposed = custom_partitioning(swap)
transposed.def_partition(
    lambda mesh, arguments, result: (mesh, swap, result.sharding, (arguments[0].sharding,)),
    sharding_rule="i j -> j i",
)


def loss(x: jax.Array) -> jax.Array:
    return (softmax(x) ** 2).sum()


def whole_loss(x: jax.Array) -> jax.Array:
    return (jax.nn.softmax(x, axis=1) ** 2).sum()


def split(operations: Sequence[Operation]) -> None:
    for op in operations:
        if op.name == "stablehlo.tanh":
            sdy.split(op, operand=0, dim=1, axis="q")


def compiled_within(x: jax.Array) -> jax.Array:
    with sdy.compiler():
        return jax.jit(function)(x)


def exported(x: jax.Array) -> jax.Array:
    described = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    return jax.export.export(sdy.jit(function))(described).call(x)


def counted(x: jax.Array) -> jax.Array:
    """Return `function` of `x` after requesting all reports about it."""
    lowered = sdy.jit(function).lower(x)
    assert lowered.device_text()
    assert lowered.cost_analysis()
    assert sdy.account(lowered).bytes_received == sdy.account(function, x).bytes_received == 0
    assert sdy.lint(function, x) is not None
    assert sdy.report(function, x) is not None
    return lowered.compile()(x)


def manual(x: jax.Array) -> jax.Array:
    return sdy.jit(jax.shard_map(function, in_specs=P("p"), out_specs=P("p"), axis_names={"p"}))(x)


def chosen(x: jax.Array) -> jax.Array:
    sharding: Any = x.sharding
    return sdy.jit(softmax, mesh=sharding.mesh, in_shardings=sdy.AUTO)(V)


def negated(x: jax.Array) -> jax.Array:
    return jax.pure_callback(np.negative, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


ENTRIES: dict[str, tuple[Callable[[jax.Array], Any], Callable[[Any], Any]]] = {
    "sdy.jit": (sdy.jit(function), function),
    "sdy.compiler": (compiled_within, function),
    "sdy.AUTO": (chosen, jax.nn.softmax),
    "policy": (sdy.jit(function, policy=split), function),
    "reports": (counted, function),
    "jax.export": (exported, function),
    "program": (lambda x: sdy.jit(function).lower(x).program(x)[0], function),
    "sdy.compile": (lambda x: sdy.compile(sdy.from_jax(function, x))(x)[0], function),
    "sdy.compile of an operator": (lambda x: sdy.compile(sdy.from_jax(softmax, x))(x)[0], jax.nn.softmax),
    "one device": (lambda x: compile_unpartitioned(sdy.from_jax(function, x))(V)[0], function),
    "in jax.jit": (jax.jit(lambda x: sdy.jit(function)(x) + 1), lambda x: function(x) + 1),
    "in jax.grad": (jax.grad(lambda x: sdy.jit(function)(x).sum()), jax.grad(lambda x: function(x).sum())),
    "in jax.vmap": (jax.vmap(sdy.jit(function)), function),
    "operator": (sdy.jit(softmax), jax.nn.softmax),
    "operator by jax.jit": (jax.jit(softmax), jax.nn.softmax),
    "gradient of an operator": (sdy.jit(jax.grad(loss)), jax.grad(whole_loss)),
    "operator that calls Python": (sdy.jit(told), function),
    "custom_partitioning": (sdy.jit(transposed), np.transpose),
    "custom_partitioning by jax.jit": (jax.jit(transposed), np.transpose),
    "partial shard_map": (manual, function),
    "callback": (
        sdy.jit(lambda x: jax.pure_callback(lambda x: -x, jax.ShapeDtypeStruct(V.shape, V.dtype), x)),
        np.negative,
    ),
}
"""Functions of an array on the mesh of the context, each with its unpartitioned reference."""


@covering
@pytest.mark.parametrize("types", MESHES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_all_runs_on_the_mesh_that_is_set(entry: str, types: str):
    call, expected = ENTRIES[entry]
    with jax.set_mesh(MESHES[types]):
        given = np.asarray(call(jax.device_put(V, NamedSharding(MESHES[types], P("p", "q")))))
    np.testing.assert_allclose(given, expected(V), rtol=1e-4, atol=1e-6)


def test_cached_operator_types_are_separate_for_each_mesh_context():
    """Cached types would name the mesh of the other context."""
    with jax.set_mesh(MESHES["Explicit Explicit"]):
        jax.eval_shape(softmax, V)
    assert jax.eval_shape(softmax, V).sharding is None
