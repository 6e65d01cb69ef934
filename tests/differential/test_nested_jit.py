"""`sdy.jit` functions called in programs that another compiler compiles, and `sdy.compiler` around calls."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.ir import Operation

import sdy
from samples import covering
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SPLIT = NamedSharding(MESH, P("data"))
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
W = np.cos(X)


def loss(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w).sum()


class Asked:
    """A policy that shards the rows of the first matrix product over "data".

    It records the number of products in each call.
    """

    def __init__(self, splits: bool = True):
        self.products: list[int] = []
        self._splits = splits

    def __call__(self, operations: Sequence[Operation]) -> None:
        products = [op for op in operations if op.name == "stablehlo.dot_general"]
        self.products.append(len(products))
        for op in products[: self._splits]:
            sdy.split(op, operand=0, dim=0, axis="data")


def batched(function: Function[Any]) -> Callable[[Any, Any], Any]:
    return lambda x, w: jax.vmap(function, (0, None))(jnp.stack([x] * 4), w)


def repeated(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def body(total: Any, _: Any) -> Any:
        return total + function(X, W), None

    return lambda x, w: jax.lax.scan(body, x.sum() + w.sum(), None, length=3)[0]


def linearized(function: Function[Any]) -> Callable[[Any, Any], Any]:
    return lambda x, w: jax.linearize(function, x, w)[1](w, w)  # along (x, w), terms of opposite sign cancel


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "grad": jax.grad,
    "value and grad": jax.value_and_grad,
    "forward": jax.jacfwd,
    "twice": lambda function: jax.jacrev(jax.grad(function)),
    "checkpoint": lambda function: jax.grad(jax.checkpoint(function)),
    "vmap": batched,
    "linearize": linearized,
    "jit": jax.jit,
    "jit of grad": lambda function: jax.jit(jax.grad(function)),
    "jit of scan": lambda function: jax.jit(repeated(function)),
    "sdy.jit of grad": lambda function: sdy.jit(jax.grad(function)),
}


def assert_close(given: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), given, expected)


@covering
@pytest.mark.parametrize("transform", TRANSFORMATIONS.values(), ids=list(TRANSFORMATIONS))
@pytest.mark.parametrize("given", [{"mesh": MESH}, {"in_shardings": (SPLIT, None)}], ids=["mesh", "shardings"])
def test_transformed_function_is_compiled_with_the_options_of_the_function(
    given: dict[str, Any], transform: Callable[[Any], Any]
):
    policy = Asked()
    results = transform(sdy.jit(lambda x, w: loss(x, w), policy=policy, **given))(X, W)
    assert_close(results, transform(jax.jit(loss))(X, W))
    assert sum(policy.products) > 0
    assert all(set(leaf.devices()) == set(MESH.devices.flat) for leaf in jax.tree.leaves(results))


def test_policy_of_one_function_does_not_apply_to_another():
    policy = Asked()
    assert_close(jax.grad(sdy.jit(loss, mesh=MESH, policy=policy))(X, W), jax.grad(loss)(X, W))
    asked = len(policy.products)
    assert_close(jax.grad(jax.jit(loss))(jax.device_put(X, SPLIT), W), jax.grad(loss)(X, W))
    assert len(policy.products) == asked


def test_policies_of_several_functions_are_asked_in_turn():
    outer, first, second = Asked(), Asked(splits=False), Asked(splits=False)
    one, two = sdy.jit(loss, policy=first), sdy.jit(lambda x, w: loss(w, x), policy=second)

    def both(x: Any, w: Any) -> Any:
        return one(x, w) + two(x, w)

    sdy.jit(both, in_shardings=(SPLIT, None), policy=outer)(X, W)
    assert outer.products == first.products == second.products == [2]
    assert_close(jax.jit(both)(jax.device_put(X, SPLIT), W), both(X, W))
    assert (len(outer.products), len(first.products), len(second.products)) == (1, 2, 2)


def test_a_mesh_that_cannot_be_used_is_told():
    one = jax.device_put(X, jax.devices()[0])
    explicit = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    run = sdy.jit(jnp.sum, mesh=explicit)
    with pytest.warns(UserWarning, match=r"compiles for 1 of the devices: its mesh, \{'x': 8\}, is not used"):
        jax.jit(lambda x: run(x))(one)


CUT = sdy.Sharding.of(sdy.AxisRef("data", 2, 2), ...)


@pytest.mark.parametrize("transform", TRANSFORMATIONS.values(), ids=list(TRANSFORMATIONS))
def test_shardings_that_only_we_know_are_used_in_another_program_too(transform: Callable[[Any], Any]):
    policy = Asked(splits=False)
    run = sdy.jit(lambda x, w: loss(x, w), mesh=MESH, in_shardings=(CUT, None), policy=policy)
    assert_close(transform(run)(X, W), transform(jax.jit(loss))(X, W))
    assert sum(policy.products) > 0


def test_inner_function_keeps_a_sub_axis_sharding_of_its_argument():
    run = sdy.jit(lambda x: jnp.tanh(x), mesh=MESH, in_shardings=CUT)
    text = jax.jit(lambda x: run(x) + 1).lower(X).as_text()
    assert '<@mesh, [{"data":(2)2}, {?}]>' in text


def test_sdy_compiler_compiles_jax_jit_functions():
    policy, program = Asked(), jax.jit(loss)
    x = jax.device_put(X, SPLIT)
    program(x, W)
    compiled: Any = None
    for _ in range(2):
        with sdy.compiler(policy=policy):
            for _ in range(2):
                assert_close(program(x, W), loss(X, W))
            compiled = program.lower(x, W).compile()
        assert policy.products == [1]
    assert_close(compiled(x, W), loss(X, W))
    program(x, W)
    assert policy.products == [1]


def test_a_compiler_gives_its_mesh_to_what_has_none():
    x = jax.jit(jnp.cos)(X)

    @sdy.compiler(mesh=sdy.Mesh.of({"data": 8}), policy=Asked())
    def fit(x: Any) -> Any:
        return jax.jit(lambda x: jnp.tanh(x @ W))(x)

    result = fit(x)
    assert_close(result, np.tanh(np.cos(X) @ W))
    assert result.sharding.spec == P("data")
    assert jax.jit(lambda x: x + 1)(x).sharding == x.sharding


def test_within_a_compiler_arrays_lie_where_jax_is_told():
    def step(x: Any, empty: Any, scale: Any, key: Any) -> Any:
        y = jax.lax.with_sharding_constraint(x * scale, NamedSharding(MESH, P("model", "data")))
        return x + jax.random.normal(key, x.shape), y, empty, key

    program = jax.jit(step, donate_argnums=0, out_shardings=(SPLIT, None, None, None))
    arguments = [np.zeros((0, 8), np.float32), 2.0, jax.random.key(0)]
    expected = program(jax.device_put(X, SPLIT), *arguments)
    x = jax.device_put(X, SPLIT)
    with sdy.compiler(mesh=MESH):
        given = program(x, *arguments)
    assert x.is_deleted()
    for ours, of_jax in zip(given, expected, strict=True):
        assert ours.sharding.is_equivalent_to(of_jax.sharding, ours.ndim)
        assert ours.aval == of_jax.aval
    assert_close(given[:3], expected[:3])


def test_a_function_of_ours_within_a_compiler_is_compiled_once():
    policy, inner = Asked(), Asked(splits=False)
    run = sdy.jit(loss, in_shardings=(SPLIT, None), policy=inner)
    with sdy.compiler(policy=policy):
        assert_close(run(X, W), loss(X, W))
        assert policy.products == inner.products == [1]
        jax.grad(run)(X, W)
    assert sum(policy.products) == sum(inner.products) > 1


def test_what_cannot_be_compiled_is_told_with_its_place():
    def policy(operations: Sequence[Operation]) -> None:
        for op in operations:
            if op.name == "stablehlo.dot_general":
                sdy.split(op, operand=0, dim=0, axis="nothing")

    with sdy.compiler(mesh=MESH, policy=policy), pytest.raises(sdy.DiagnosticError, match=r"test_nested_jit\.py"):
        jax.jit(loss)(X, W)


def summed(layer: Any, x: Any) -> Any:
    return layer(x).sum()


def summed_rows(layer: Any, x: Any) -> Any:
    return jax.vmap(layer)(x).sum()


def test_the_jit_of_equinox_is_ours_too():
    equinox: Any = pytest.importorskip("equinox")
    policy = Asked()
    layer = equinox.nn.Linear(8, 8, key=jax.random.key(0))
    gradient = equinox.filter_grad(summed_rows)
    expected = gradient(layer, X)
    with sdy.compiler(mesh=MESH, policy=policy):
        assert_close(equinox.filter_jit(gradient)(layer, X), expected)
    assert sum(policy.products) > 0
    run = sdy.jit(loss, mesh=MESH, policy=policy)
    asked = len(policy.products)

    def with_weights(x: Any) -> Any:
        return run(x, W)

    assert_close(equinox.filter_jit(with_weights)(X), loss(X, W))
    assert len(policy.products) == asked + 1


def test_the_jit_of_flax_is_ours_too():
    nnx: Any = pytest.importorskip("flax.nnx")
    policy = Asked()
    model = nnx.Linear(8, 8, rngs=nnx.Rngs(0))
    gradient = nnx.grad(summed)
    expected = gradient(model, X)
    with sdy.compiler(mesh=MESH, policy=policy):
        assert_close(nnx.jit(gradient)(model, X), expected)
    assert sum(policy.products) > 0
