"""Annotated operators in JAX: called, traced, differentiated, mapped over, on one device and on eight."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy
from samples import covering
from sdy.diagnostics import DiagnosticError
from sdy.operators.call import OperatorCall, call_of, parse_call
from sdy.operators.transforms import Batched, Gradient
from sdy.rules import AnnotationError
from sdy.type_helpers import Function


@sdy.register_op("m^ kd+, kd+ n -> m^ n")
def operator(x: jax.Array, w: jax.Array, h: float = 0) -> jax.Array:
    return jnp.matmul(x, w)


@sdy.register_op("(h^ m^) kd+, kd+ n -> h^ m^ n", name="matmul_custom")
def matmul_and_view(x: jax.Array, w: jax.Array, h: float) -> jax.Array:
    out = jnp.matmul(x, w)
    return out.reshape(h, out.shape[0] // h, out.shape[1])


@sdy.register_op("(h t) k -> h t k")
def reshape(tensor: jax.Array, h: int = 8) -> jax.Array:
    return tensor.reshape(h, tensor.shape[0] // h, tensor.shape[-1])


@sdy.register_op("* t -> a * t")
def tile(x: jax.Array, a: int) -> jax.Array:
    return jnp.broadcast_to(x, (a, *x.shape))


@sdy.register_op("a+ b, ? -> a+ b, b, ?")
def parts_and_sum(x: jax.Array, scale: float) -> tuple[jax.Array, jax.Array, str]:
    return x * scale, x.sum(0), "done"


def product_of(x: tuple[int, ...], w: tuple[int, ...], **_: Any) -> str:
    return f"m k+, k+ n -> m n{' ' if w else ''}"


@sdy.register_op(product_of)
def made(x: jax.Array, w: jax.Array, twice: bool = False) -> jax.Array:
    return (2 if twice else 1) * (x @ w)


D, M = "data", "model"


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)


def array(*shape: int) -> jax.Array:
    """Return an array of different numbers."""
    return jnp.sin(jnp.arange(np.prod(shape, dtype=int), dtype=jnp.float32)).reshape(shape)


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


@pytest.mark.parametrize("name", SEED)
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


def test_calls_are_written_and_read():
    call = OperatorCall("f", (("h", 8), ("name", "a, b"))).then(Gradient(2, (0,), (0, 1))).then(Batched((True, False)))
    assert call.name == "batched(gradient(f))"
    assert str(call) == ("batched(gradient(f(h=8, name='a, b'), count=2, of=(0,), at=(0, 1)), batch=(True, False))")
    assert parse_call(str(call)) == call
    for text in ("f", "f(", "f(1)(2)", "gradient()", "f(h=g())", "gradient(f(), of=())"):
        with pytest.raises(ValueError, match="not an operator call"):
            parse_call(text)


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


def test_backward_operators_that_are_none():
    @sdy.register_op("a -> a")
    def takes_too_few(g: jax.Array) -> jax.Array:
        return g

    @sdy.register_op("a, b, a -> a")
    def gives_too_few(x: jax.Array, y: jax.Array, g: jax.Array) -> jax.Array:
        return g

    for backward, message in (
        (takes_too_few, "'takes_too_few': as `backward` of 'sum_0' takes 1 tensors, but is called with 3"),
        (gives_too_few, "'gives_too_few': as `backward` of 'sum_1' must return 2 gradients, but returns 1"),
    ):
        name = f"sum_{int(backward is gives_too_few)}"
        wrong = sdy.register_op("a, b^ -> a", name=name, backward=backward)(adds_a_sum)
        with pytest.raises(AnnotationError, match=re.escape(message)):
            jax.grad(lambda x, y, wrong=wrong: wrong(x, y).sum())(array(4), array(3))


def adds_a_sum(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + y.sum()


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


def takes_one(x: jax.Array) -> jax.Array:
    return x


def returns_two(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x, x


def no_type(x, y: int) -> jax.Array:  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    return jnp.zeros(y)


def no_result_type(x: jax.Array):
    return x


def takes_any(*xs: jax.Array) -> jax.Array:
    return xs[0]


WRONG_REGISTRATIONS: dict[str, tuple[Any, Any, str | None, str]] = {
    "annotation": (
        "a b) -> a",
        takes_one,
        None,
        "operator 'takes_one': close each parenthesis in its dimension, and open it first:\na b) -> a\n   ^",
    ),
    "output": (
        "a -> a b",
        takes_one,
        None,
        "operator 'takes_one': output identifier 'b' is in no input, and no argument has that name",
    ),
    "inputs": (
        "a, a -> a",
        takes_one,
        None,
        "operator 'takes_one': the annotation has 2 inputs, but the function only 1 arguments",
    ),
    "type": (
        "a -> a",
        no_type,
        None,
        "operator 'no_type': argument 'x' has no type annotation: write `x: jax.Array`, if it is a tensor",
    ),
    "result type": (
        "a -> a",
        no_result_type,
        None,
        "operator 'no_result_type': the result has no type annotation: write `-> jax.Array`, if it is a tensor",
    ),
    "many": (
        "a -> a",
        takes_any,
        None,
        "operator 'takes_any': argument 'xs' is variadic: declare each parameter",
    ),
    "twice": (
        "a -> a",
        takes_one,
        "operator",
        "operator 'operator' is registered twice: give one of them another name",
    ),
    "name": (
        "a -> a",
        takes_one,
        "my op",
        "operator 'my op': the name must be an identifier, and none of gradient, tangent, batched, padded, key_data",
    ),
}


@pytest.mark.parametrize(
    ("annotation", "function", "name", "message"), WRONG_REGISTRATIONS.values(), ids=WRONG_REGISTRATIONS
)
def test_wrong_registrations(annotation: Any, function: Function[Any], name: str | None, message: str):
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        sdy.register_op(annotation, name=name)(function)
    assert str(raised.value) == message


WRONG_CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "missing": (lambda: operator(array(4, 8)), "operator 'operator': missing a required argument: 'w'"),
    "rank": (
        lambda: operator(array(4), array(4, 2)),
        "operator 'operator': argument 'x' has 2 dimensions in the annotation, but its shape is (4,)",
    ),
    "sizes": (
        lambda: operator(array(4, 8), array(6, 2)),
        "operator 'operator': `kd` is 8 as dimension 1 of argument 'x', but 6 as dimension 0 of argument 'w'",
    ),
    "no array": (
        lambda: operator(array(4, 8), None),
        "operator 'operator': argument 'w' is not an array, but has dimensions in the annotation",
    ),
    "an array": (
        lambda: operator(array(4, 8), array(8, 2), array(3)),
        "operator 'operator': argument 'h' is an array: write its dimensions in the annotation, `1` for a scalar",
    ),
    "not inferred": (
        lambda: matmul_and_view(array(8, 16), array(16, 4), 3),
        "operator 'matmul_custom': dimension 0 of argument 'x' is 8, which is not divisible by `(h m)` with h=3",
    ),
    "not written": (
        lambda: jax.jit(lambda x, w: operator(x, w, print))(array(4, 8), array(8, 2)),
        "operator 'operator': argument 'h' is <built-in function print>, which can't be written into a program: "
        "pass a number, a string, None, or a tuple, list or dict of such",
    ),
}


@pytest.mark.parametrize(("call", "message"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_calls(call: Callable[[], Any], message: str):
    with pytest.raises(AnnotationError) as raised:
        call()
    assert str(raised.value) == message


def as_it_is(function: Any) -> Any:
    return function


@pytest.mark.parametrize("trace", [as_it_is, jax.jit], ids=["eager", "jit"])
def test_functions_that_do_not_give_what_the_annotation_says(trace: Callable[..., Any]):
    number = 1 if trace is jax.jit else 0

    def refused(annotation: str, function: Function[Any], name: str, message: str):
        wrong = sdy.register_op(annotation, name=f"{name}{number}")(function)
        with pytest.raises(AnnotationError, match=re.escape(f"operator '{name}{number}': {message}")):
            trace(wrong)(array(4, 2))

    refused("a b -> b a", takes_one, "transposes", "output 0 has the shape (4, 2), but (2, 4) by the annotation")
    refused(
        "a b -> a b, a b, a b", returns_two, "gives_two", "the annotation has 3 outputs, but the function returns 2"
    )
    refused("a b -> a b", returns_two, "gives_both", "output 0 is not an array, but has dimensions in the annotation")
    refused("a b ->", takes_one, "gives_one", "the annotation has 0 outputs, but the function returns 1")


def test_an_operator_that_is_not_registered_is_named(mesh: jax.sharding.Mesh):
    module = sdy.parse("""
      func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {
        %1 = stablehlo.custom_call @unknown(%0) {sdy.operator = "unknown()"} : (tensor<4xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }""")
    with pytest.raises(DiagnosticError, match="no operator 'unknown' is registered: import what registers it"):
        sdy.interpret(module, np.ones(4, np.float32))


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
    assert [jit(operator)(*narrow).dtype for jit in (as_it_is, jax.jit, sdy.jit)] == [jnp.bfloat16] * 3


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
