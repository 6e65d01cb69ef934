"""Annotated operators: their numbers and programs, traced and transformed, on one device and on eight."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy
from sample_operators import array, made, matmul_and_view, operator, parts_and_sum, reshape, tile
from samples import covering, sample
from sdy.diagnostics import DiagnosticError
from sdy.operators.call import call_of
from sdy.rules import AnnotationError

D, M = "data", "model"


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)


def assert_close(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def plain(function: Any) -> Callable[..., Any]:
    """Return the registered function."""
    return function.__wrapped__


SEED: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], tuple[tuple[str | None, ...], ...]]] = {
    "matmul": (operator, (array(8, 16), array(16, 4)), {}, ((None, M), (M, D))),
    "matmul and view": (matmul_and_view, (array(8, 16), array(16, 4)), {"h": 2}, ((None, D), (D, M))),
    "reshape": (reshape, (array(64, 6),), {"h": 8}, ((D, M),)),
    "tile": (tile, (array(4, 6, 2),), {"a": 3}, ((D, None, M),)),
    "parts and sum": (parts_and_sum, (array(8, 6), 2.0), {}, ((D, M),)),
    "made": (made, (array(8, 16), array(16, 4)), {"twice": True}, ((None, M), (M, D))),
}


@pytest.mark.parametrize("name", SEED)
def test_called_with_arrays_it_is_the_function(name: str):
    function, args, kwargs, _ = SEED[name]
    found, expected = function(*args, **kwargs), plain(function)(*args, **kwargs)
    if name == "parts and sum":
        assert (found[2], expected[2]) == ("done", "done")
        found, expected = found[:2], expected[:2]
    assert_close(found, expected)
    assert function.__name__ == plain(function).__name__


def of_tensors(name: str) -> tuple[Callable[..., Any], Callable[..., Any], tuple[jax.Array, ...]]:
    """Return an example's operator and function of its tensors only, and these tensors."""
    function, args, kwargs, _ = SEED[name]
    count = sum(isinstance(arg, jax.Array) for arg in args)

    def apply(function: Callable[..., Any], tensors: tuple[jax.Array, ...]) -> Any:
        result = function(*tensors, *args[count:], **kwargs)
        return [each for each in jax.tree.leaves(result) if isinstance(each, jax.Array)]

    def annotated(*tensors: jax.Array) -> Any:
        return apply(function, tensors)

    def expected(*tensors: jax.Array) -> Any:
        return apply(plain(function), tensors)

    return annotated, expected, args[:count]


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*tensors: jax.Array) -> Any:
        return sum((each**2).sum() for each in function(*tensors))

    return compute


def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(x: jax.Array, *rest: jax.Array) -> Any:
        return jax.vmap(function, (1, *[None] * len(rest)))(jnp.stack([x, x + 1], 1), *rest)

    return compute


def gradient_of_mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(x: jax.Array, *rest: jax.Array) -> Any:
        each = jax.vmap(loss(function), (0, *[None] * len(rest)))
        return jax.grad(lambda x: each(x, *rest).sum())(jnp.stack([x, x + 1]))

    return compute


def gradient_of_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*tensors: jax.Array) -> Any:
        return (jax.grad(loss(function), argnums=0)(*tensors) ** 2).sum()

    return jax.grad(compute)


def forward(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*tensors: jax.Array) -> Any:
        return jax.jvp(loss(function), tensors, tuple(tensor + 1 for tensor in tensors))

    return compute


def forward_of_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*tensors: jax.Array) -> Any:
        return jax.jvp(jax.grad(loss(function)), tensors, tensors)

    return compute


def linearized_scan(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*tensors: jax.Array) -> Any:
        def scanned(x: jax.Array) -> Any:
            return jax.lax.scan(lambda carry, _: (carry * 0.9, function(carry, *tensors[1:])), x, length=2)[1]

        return jax.linearize(scanned, tensors[0])[1](tensors[0])

    return compute


TRANSFORMS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": jax.jit,
    "grad": lambda f: jax.grad(loss(f), argnums=0),
    "jit of grad": lambda f: jax.jit(jax.grad(loss(f), argnums=0)),
    "vmap": mapped,
    "grad of vmap": gradient_of_mapped,
    "grad of grad": gradient_of_gradient,
    "jvp": forward,
    "jit of jvp of grad": lambda f: jax.jit(forward_of_gradient(f)),
    "linearize of scan": linearized_scan,
}


@covering
@pytest.mark.parametrize("name", SEED)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_traced_it_computes_the_same(name: str, transform: Callable[[Callable[..., Any]], Callable[..., Any]]):
    annotated, function, tensors = of_tensors(name)
    assert_close(transform(annotated)(*tensors), transform(function)(*tensors))


def sharded(mesh: jax.sharding.Mesh, name: str) -> tuple[jax.Array, ...]:
    """Return the tensors of an example, sharded over the mesh."""
    tensors, specs = of_tensors(name)[2], SEED[name][3]
    return tuple(
        jax.device_put(tensor, NamedSharding(mesh, PartitionSpec(*spec)))
        for tensor, spec in zip(tensors, specs, strict=True)
    )


@pytest.mark.parametrize("name", sample(SEED, one_in=2))
def test_eight_devices_compute_the_same(mesh: jax.sharding.Mesh, name: str):
    annotated, function, tensors = of_tensors(name)
    expected = jax.value_and_grad(loss(function), range(len(tensors)))(*tensors)
    step = jax.value_and_grad(loss(annotated), range(len(tensors)))
    split = sharded(mesh, name)
    assert_close(jax.jit(step)(*split), expected)  # partitioned by XLA
    assert_close(sdy.jit(step)(*split), expected)
    module = sdy.from_jax(step, *split)
    assert_close(list(sdy.interpret(module, *map(np.asarray, tensors))), jax.tree.leaves(expected))


def calls(module: Any) -> list[Any]:
    return [op for op in module.walk() if call_of(op) is not None]


def test_one_operation_with_a_rule(mesh: jax.sharding.Mesh):
    module = sdy.from_jax(operator, *sharded(mesh, "matmul"))
    (call,) = calls(module)
    assert call.name == "stablehlo.custom_call"
    assert call.call_target_name.data == "operator"
    assert str(call.attributes["sdy.sharding_rule"]) == (
        "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=16, k=4} reduction={j} need_replication={i} "
        "blocked_propagation={i}, custom>"
    )
    sdy.propagate(module)
    (call,) = calls(module)
    assert sdy.get_sharding(call.results[0]) == sdy.Sharding.of(None, D)


def test_on_several_devices_jax_lowers_it_to_a_custom_call(mesh: jax.sharding.Mesh):
    text = jax.jit(operator).lower(*sharded(mesh, "matmul")).as_text()
    assert re.search(r'stablehlo\.custom_call @.* sdy\.operator = "operator\(h=0\)", sdy\.sharding_rule', text)
    assert "dot_general" not in text


def test_arguments_that_are_sizes_are_divided(mesh: jax.sharding.Mesh):
    module = sdy.from_jax(
        lambda x: reshape(x, h=8),
        jax.ShapeDtypeStruct((64, 3), "float32", sharding=NamedSharding(mesh, PartitionSpec(D))),
    )
    sdy.propagate(module)
    sdy.partition(module)
    assert "stablehlo.reshape %arg0 : (tensor<16x3xf32>) -> tensor<2x8x3xf32>" in sdy.format(module)


def test_what_is_no_tensor_is_returned_under_jit():
    seen: list[Any] = []

    @jax.jit
    def f(x: jax.Array) -> jax.Array:
        both, total, word = parts_and_sum(x, 3.0)
        seen.append(word)
        return both + total

    assert_close(f(array(4, 2)), 3 * array(4, 2) + array(4, 2).sum(0))
    assert seen == ["done"]


def test_the_backward_operator_is_the_gradient(mesh: jax.sharding.Mesh):
    @sdy.register_op("m kd, kd n, m n -> m kd, kd n", name="tripled_backward")
    def backward(x: jax.Array, w: jax.Array, g: jax.Array, scale: float) -> tuple[jax.Array, jax.Array]:
        return scale * (g @ w.T), scale * (x.T @ g)

    @sdy.register_op("m kd+, kd+ n -> m n", name="tripled", backward=backward)
    def forward(x: jax.Array, w: jax.Array, scale: float = 3.0) -> jax.Array:
        return jax.lax.stop_gradient(scale * (x @ w))

    x, w = array(8, 16), array(16, 4)
    expected = jax.grad(lambda x, w: ((3 * x @ w) ** 2).sum(), (0, 1))(x, w)
    found = jax.grad(lambda x, w: (forward(x, w) ** 2).sum(), (0, 1))
    assert_close(found(x, w), expected)
    assert [sdy.operator_name(op) for op in calls(sdy.from_jax(found, x, w))] == ["tripled", "tripled_backward"]


@sdy.register_op("m kd, kd n, m n -> m kd, kd n", check=False)
def doubled_backward(x: jax.Array, w: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
    return 2 * (g @ w.T), 2 * (x.T @ g)


@sdy.register_op("m kd+, kd+ n -> m n", backward=doubled_backward, check=False)
def doubled(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.stop_gradient(2 * (x @ w))


def doubled_plainly(x: jax.Array, w: jax.Array) -> jax.Array:
    return 2 * (x @ w)


def test_the_backward_operator_is_mapped_over():
    x, w = array(3, 8, 16), array(16, 4)

    def of_each(function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.grad(lambda x, w: (jax.vmap(function, (0, None))(x, w) ** 2).sum(), (0, 1))

    assert_close(of_each(doubled)(x, w), of_each(doubled_plainly)(x, w))


def test_forward_mode_of_an_operator_with_a_backward_operator_is_refused():
    message = "operator 'doubled': has no tangent for jax.jvp, jax.jacfwd or jax.linearize, as 'doubled_backward'"
    with pytest.raises(AnnotationError, match=re.escape(message)):
        jax.jvp(doubled, (array(8, 16), array(16, 4)), (array(8, 16), array(16, 4)))


def test_the_transpose_of_a_linear_operator():
    x, w, g = array(8, 16), array(16, 4), array(8, 4)
    (found,) = jax.linear_transpose(lambda w: operator(x, w), w)(g)
    assert_close(found, x.T @ g)


def test_in_a_program_of_each_device_it_is_the_function(mesh: jax.sharding.Mesh):
    specs = (PartitionSpec(None, M), PartitionSpec(M, None))

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.psum(operator(x, w), M)

    mapped = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=PartitionSpec()))
    assert_close(mapped(array(8, 16), array(16, 4)), array(8, 16) @ array(16, 4))


def test_an_operator_calls_others_as_functions():
    @sdy.register_op("m^ kd, kd n -> m^ n", name="matmul_of_matmul")
    def outer(x: jax.Array, w: jax.Array) -> jax.Array:
        return operator(x, w)

    assert len(calls(sdy.from_jax(outer, array(8, 16), array(16, 4)))) == 1


TABLE = jnp.arange(8.0)


@sdy.register_op("a b^ -> a b^")
def times_table(x: jax.Array) -> jax.Array:
    return x * TABLE


@sdy.register_op("a b -> a b")
def of_eight_rows(x: jax.Array) -> jax.Array:
    return jnp.broadcast_to(x.sum(0), (8, 8))


def test_arrays_that_a_function_closes_over_are_in_its_program(mesh: jax.sharding.Mesh):
    x = jax.device_put(array(8, 8), NamedSharding(mesh, PartitionSpec(D)))
    for jit in (jax.jit, sdy.jit):
        assert_close(jit(times_table)(x), array(8, 8) * TABLE)
    assert_close(jax.jit(times_table)(array(8, 8)), array(8, 8) * TABLE)
    (call,) = calls(sdy.from_jax(times_table, array(8, 8)))
    assert len(call.operands) == 1


def test_in_a_loop(mesh: jax.sharding.Mesh):
    def loop(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: jax.lax.scan(lambda c, _: (function(c) * 0.1 + c, None), x, None, length=3)[0]

    x = jax.device_put(array(8, 8), NamedSharding(mesh, PartitionSpec(D)))
    expected = jax.grad(lambda x: loop(plain(times_table))(x).sum())(array(8, 8))
    assert_close(sdy.jit(jax.grad(lambda x: loop(times_table)(x).sum()))(x), expected)


def test_what_is_not_divided_is_whole(mesh: jax.sharding.Mesh):
    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(None, D)))
        w = jax.lax.with_sharding_constraint(w, NamedSharding(mesh, PartitionSpec(D, M)))
        return operator(x, w)

    x, w = array(8, 6), array(6, 7)
    for jit in (jax.jit, sdy.jit):
        assert_close(jit(f)(x, w), x @ w)


def test_a_function_that_is_not_one_of_parts(mesh: jax.sharding.Mesh):
    x = jax.device_put(array(8, 8), NamedSharding(mesh, PartitionSpec(D)))
    message = (
        "operator 'of_eight_rows' cannot be computed for operands of types 'tensor<2x8xf32>': "
        "operator 'of_eight_rows': output 0 has the shape (8, 8), but (2, 8) by the annotation"
    )
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        sdy.jit(of_eight_rows)(x)


def test_a_module_of_text_calls_what_is_registered(mesh: jax.sharding.Mesh):
    module = sdy.parse(sdy.format(sdy.from_jax(operator, *sharded(mesh, "matmul"))))
    sdy.propagate(module)
    x, w = of_tensors("matmul")[2]
    assert_close(sdy.compile(module)(np.asarray(x), np.asarray(w))[0], x @ w)


def test_element_types_are_those_of_the_arrays(mesh: jax.sharding.Mesh):
    with jax.enable_x64(True):
        wide = jnp.ones((8, 16)), jnp.ones((16, 4))
        assert sdy.jit(operator)(*wide).dtype == np.float64
    narrow = jnp.ones((8, 16), jnp.bfloat16), jnp.ones((16, 4), jnp.bfloat16)
    assert [function(*narrow).dtype for function in (operator, jax.jit(operator), sdy.jit(operator))] == [
        jnp.bfloat16
    ] * 3


def test_mapped_over_and_differentiated_it_is_one_operation_each():
    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.vmap(operator, (0, None))(x, w).sum()

    names = [sdy.operator_name(op) for op in calls(sdy.from_jax(jax.value_and_grad(f), array(3, 8, 16), array(16, 4)))]
    assert names == ["batched(operator)", "gradient(batched(operator))"]


def test_axes_that_are_part_of_types():
    mesh = jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Explicit,) * 2)
    x = jax.device_put(array(8, 16), NamedSharding(mesh, PartitionSpec(None, None)))
    w = jax.device_put(array(16, 4), NamedSharding(mesh, PartitionSpec(None, M)))
    expected = jax.grad(lambda w: ((array(8, 16) @ w) ** 2).sum())(array(16, 4))
    with jax.set_mesh(mesh):
        assert jax.jit(operator)(x, w).sharding.spec == PartitionSpec(None, M)
        assert_close(jax.jit(jax.grad(lambda w: (operator(x, w) ** 2).sum()))(w), expected)
