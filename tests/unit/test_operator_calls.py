"""Annotated operators: registration, the text form of calls, and the errors of both."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sdy
from sample_operators import array, matmul_and_view, operator
from sdy.diagnostics import DiagnosticError
from sdy.operators.call import OperatorCall, parse_call
from sdy.operators.transforms import Batched, Gradient
from sdy.rules import AnnotationError
from sdy.type_helpers import Function


def test_calls_are_written_and_read():
    call = OperatorCall("f", (("h", 8), ("name", "a, b"))).then(Gradient(2, (0,), (0, 1))).then(Batched((True, False)))
    assert call.name == "batched(gradient(f))"
    assert str(call) == ("batched(gradient(f(h=8, name='a, b'), count=2, of=(0,), at=(0, 1)), batch=(True, False))")
    assert parse_call(str(call)) == call
    for text in ("f", "f(", "f(1)(2)", "gradient()", "f(h=g())", "gradient(f(), of=())"):
        with pytest.raises(ValueError, match="not an operator call"):
            parse_call(text)


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


def test_an_operator_that_is_not_registered_is_named():
    module = sdy.parse("""
      func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {
        %1 = stablehlo.custom_call @unknown(%0) {sdy.operator = "unknown()"} : (tensor<4xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }""")
    with pytest.raises(DiagnosticError, match="no operator 'unknown' is registered: import what registers it"):
        sdy.interpret(module, np.ones(4, np.float32))
