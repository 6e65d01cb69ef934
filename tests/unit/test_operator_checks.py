"""Wrong annotations are found by computing the function unpartitioned and on shards."""

import re
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sdy
from sdy.rules.annotated_factors import AnnotationError
from sdy.type_helpers import Function

_NUMBERS = count()


def registered(annotation: Any, function: Function[Any], **options: Any):
    return sdy.register_op(annotation, name=f"checked{next(_NUMBERS)}", **options)(function)


def softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x)


def matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def largest(x: jax.Array) -> jax.Array:
    return x.max(1)


def total(x: jax.Array) -> jax.Array:
    return x.sum(1)


def running_sum(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, axis=1)


def unflattened(x: jax.Array, w: jax.Array, h: int) -> jax.Array:
    return (x.reshape(h, -1, x.shape[1]) @ w) + 0.0


def looked_up(table: jax.Array, ids: jax.Array) -> jax.Array:
    return table[ids]


def in_blocks(x: jax.Array, block: int = 16) -> jax.Array:
    return x.reshape(-1, block, x.shape[1]).cumsum(1).reshape(x.shape)


def of_all_blocks(x: jax.Array, block: int = 16) -> jax.Array:
    return in_blocks(x, block) / x.sum(0)


def hyperbolic(x: jax.Array) -> jax.Array:
    return jnp.tanh(x)


def shares(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w / w.sum()


X = np.linspace(-1, 1, 512, dtype=np.float32).reshape(64, 8)
W = np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4)


@pytest.mark.parametrize(
    ("annotation", "function", "arguments"),
    [
        ("b d^ -> b d^", softmax, (X,)),
        ("b^ d^ -> b^ d^", softmax, (X,)),
        ("m k+, k+ n -> m n", matmul, (X, W)),
        ("m k^, k^ n -> m n", matmul, (X, W)),
        ("a b^ -> a", largest, (X,)),
        ("a b+ -> a", total, (X,)),
        ("a b^ -> a b^", running_sum, (X,)),
        ("(h t) k+, k+ n, ? -> h t n", unflattened, (X, W, 8)),
        ("(h^ t) k+, k+ n, ? -> h^ t n", unflattened, (X, W, 8)),
        ("v^ d, b -> b d", looked_up, (W, np.arange(6))),
        ("* -> *", hyperbolic, (X,)),
    ],
)
def test_annotations_that_hold(annotation: str, function: Function[Any], arguments: tuple[Any, ...]):
    operator = registered(annotation, function)
    count = sum(isinstance(argument, np.ndarray) for argument in arguments)
    dynamic, static = arguments[:count], arguments[count:]

    def run(*arrays: jax.Array) -> Any:
        return operator(*arrays, *static)

    np.testing.assert_allclose(jax.jit(run)(*dynamic), function(*map(jnp.asarray, dynamic), *static), 1e-5)


@pytest.mark.parametrize(
    ("annotation", "function", "arguments", "told"),
    [
        (
            "b d -> b d",
            softmax,
            (X,),
            [
                "`d` cannot be sharded as the annotation `b d -> b d` says: for arguments float32[4, 4], 2 shards of "
                "`d`=4, concatenated, differ from the unpartitioned result: output 0 is ",
                "Write `b d^ -> b d^`",
            ],
        ),
        ("a b+ -> a", largest, (X,), ["2 shards of `b`=4, summed, differ", "Write `a b^ -> a`"]),
        ("a b -> a b", running_sum, (X,), ["`b` cannot be sharded", "Write `a b^ -> a b^`"]),
        ("m k^, k^ n -> m n", shares, (X, W), ["`n` cannot be sharded", "Write `m k^, k^ n^ -> m n^`"]),
        ("v+ d, b -> b d", looked_up, (W, np.arange(6)), ["`v` cannot be sharded", "Write `v^ d, b -> b d`"]),
    ],
)
def test_annotations_that_do_not_hold(
    annotation: str, function: Function[Any], arguments: tuple[Any, ...], told: list[str]
):
    operator = registered(annotation, function)
    for jit in (jax.jit, sdy.jit):
        with pytest.raises(AnnotationError) as raised:
            jit(operator)(*arguments)
        assert str(raised.value).startswith(f"operator '{operator.name}': ")
        for text in told:
            assert text in str(raised.value)


def test_believed_where_that_is_asked_for():
    operator = registered("b d -> b d", softmax, check=False)
    np.testing.assert_allclose(jax.jit(operator)(X), softmax(jnp.asarray(X)), rtol=1e-6)


def test_called_with_arrays_it_is_only_the_function():
    calls: list[tuple[int, ...]] = []

    def seen(x: jax.Array) -> jax.Array:
        calls.append(x.shape)
        return x

    operator = registered("a b -> a b", seen)
    operator(jnp.ones((64, 8)))
    assert calls == [(64, 8)]
    jax.jit(operator)(jnp.ones((64, 8)))
    assert {(4, 4), (2, 4), (4, 2)} <= set(calls)
    seen_by_now = len(calls)
    jax.jit(lambda x: operator(x))(jnp.ones((64, 8)))
    assert calls[seen_by_now:] == [(64, 8)] * (len(calls) - seen_by_now)


def test_check_uses_the_sizes_of_the_call():
    """Four rows are no block of sixteen; two shards of 64 rows are two blocks each."""
    right = registered("a b -> a b", in_blocks)
    np.testing.assert_allclose(jax.jit(right)(X), in_blocks(jnp.asarray(X)), rtol=1e-5)
    wrong = registered("a b -> a b", of_all_blocks)
    with pytest.raises(AnnotationError, match=r"arguments float32\[64, 8\], 2 shards of `a`=64, concatenated"):
        jax.jit(wrong)(X)


def test_what_takes_no_random_numbers_is_not_checked():
    def picky(x: jax.Array) -> jax.Array:
        if x.shape != (2048, 1024):
            raise ValueError("these only")
        return x

    operator = registered("a b -> a b", picky)
    with pytest.warns(
        UserWarning, match="not checked with arrays of random numbers, as the function does not accept them"
    ):
        jax.eval_shape(operator, jax.ShapeDtypeStruct((2048, 1024), np.float32))


def test_under_a_mesh_it_is_checked_on_one_device():
    mesh = jax.make_mesh((8,), ("x",))
    operator = registered("b d -> b d", softmax)
    with jax.set_mesh(mesh), pytest.raises(AnnotationError, match=re.escape("Write `b d^ -> b d^`")):
        jax.jit(operator)(X)


def multiplied(x: jax.Array, y: jax.Array) -> jax.Array:
    return x * y


def multiplied_thrice(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    return x * y * z


@pytest.mark.parametrize(
    ("annotation", "function", "shapes", "names", "right"),
    [
        ("m k+, q+ n -> m n", matmul, [(4, 8), (8, 6)], "`k` and `q`", "m k+, k+ n -> m n"),
        ("m k+, q^ n -> m n", matmul, [(4, 8), (8, 6)], "`k` and `q`", "m k+, k+ n -> m n"),
        ("a b, c d+ -> a b", multiplied, [(8, 6), (8, 6)], "`a` and `c`", "a b, a d+ -> a b"),
        ("a, b^, c^ -> a", multiplied_thrice, [(8,), (8,), (8,)], "`a` and `b` and `c`", "a, a, a -> a"),
        ("a, b^ -> a", multiplied, [(2,), (2,)], "`a` and `b`", "a, a -> a"),
    ],
)
def test_one_dimension_with_two_names(
    annotation: str, function: Function[Any], shapes: list[tuple[int, ...]], names: str, right: str
):
    operator = registered(annotation, function)
    message = f"{names} are one dimension, but have different names in the annotation"
    with pytest.raises(AnnotationError, match=re.escape(message)) as refusal:
        jax.jit(operator)(*map(jnp.ones, shapes))
    assert str(refusal.value).endswith(f"Write `{right}`")


def test_equal_sizes_that_are_different_dimensions_hold():
    jax.jit(registered("m k+, k+ n -> m n", matmul))(jnp.ones((8, 8)), jnp.ones((8, 8)))
