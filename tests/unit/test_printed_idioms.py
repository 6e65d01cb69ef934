"""`sdy.to_python` on operations that Python and JAX have a short form for: what is printed, and that it is the same."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import sdy
from samples import sample

Function = Callable[..., Any]

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
BITS = np.arange(24, dtype=np.uint32).reshape(4, 6)
KEY = np.array([1, 2], np.uint32)
PLACES = np.array([1, 3, 2, 0, -1], np.int32)
STATS = np.array([0.1, 0.9], np.float32)


def check(function: Function, *args: Any) -> str:
    """Check that the printed program computes what `function` does, and return it without comments."""
    text = sdy.to_python(sdy.from_jax(jax.jit(function).lower(*args)), "program")
    names: dict[str, Any] = {}
    exec(text, names)
    results = jax.tree.leaves(jax.jit(names["program"])(*args))
    for result, expected in zip(results, jax.tree.leaves(jax.jit(function)(*args)), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=2e-6, atol=1e-6)
    lines = text[text.index("def ") :].split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


Case = tuple[Function, tuple[Any, ...], str]
"""A function, its arguments, and a text."""


def one(function: Callable[[jax.Array], Any], x: Any, text: str) -> Case:
    return function, (x,), text


def two(function: Callable[[jax.Array, jax.Array], Any], x: Any, y: Any, text: str) -> Case:
    return function, (x, y), text


def sum_and_mean(x: jax.Array) -> Any:
    total = x.sum(0)
    return total / 4, total


def two_uses(x: jax.Array) -> Any:
    y = x * x + 1
    return jnp.tanh(y), jnp.cos(y)


def softmax_by_hand(x: jax.Array) -> jax.Array:
    exponentials = jnp.exp(x - x.max(1)[:, None])
    return exponentials / exponentials.sum(1, keepdims=True)


def row_of(x: jax.Array) -> jax.Array:
    return lax.broadcasted_iota("int32", x.shape, 0)


def column_of(x: jax.Array) -> jax.Array:
    return lax.broadcasted_iota("int32", x.shape, 1)


def unpacked(x: jax.Array) -> jax.Array:
    first, second = jnp.sin(x), jnp.cos(x)
    third, fourth = (jnp.tanh(first - each) for each in (second, x))
    return jnp.where(third > fourth, third * second, fourth * second)


IDIOMS: dict[str, Case] = {
    "softmax": one(lambda x: jax.nn.softmax(x) + 1, X, "return jax.nn.softmax(x, axis=1) + 1.0"),
    "softmax, first dimension": one(lambda x: jax.nn.softmax(x, 0), X, "return jax.nn.softmax(x, axis=0)"),
    "logsumexp": one(lambda x: jax.nn.logsumexp(x, 1), X, "return jax.nn.logsumexp(x, axis=1)"),
    "mean": one(lambda x: x.mean(0), X, "return jnp.mean(x, axis=0)"),
    "mean of all": one(jnp.mean, X, "return jnp.mean(a)"),
    "mean, dimension kept": one(lambda x: x - x.mean(1, keepdims=True), X, "x - jnp.mean(x, axis=1, keepdims=True)"),
    "sigmoid": one(jax.nn.sigmoid, X, "return jax.nn.sigmoid(x)"),
    "GELU": one(jax.nn.gelu, X, "return jax.nn.gelu(x)"),
    "exact GELU": one(lambda x: jax.nn.gelu(x, approximate=False), X, "return jax.nn.gelu(x, approximate=False)"),
    "variance": one(lambda x: x.var(1), X, "return jnp.var(x, axis=1)"),
    "variance with another divisor": one(lambda x: x.var(1, ddof=1), X, "jnp.var(x, axis=1, correction="),
    "uniform": one(lambda k: jax.random.uniform(k, (3, 2)), KEY, "return jax.random.uniform(k, shape=(3, 2))"),
    "uniform within limits": one(
        lambda k: jax.random.uniform(k, (3, 2), minval=-1.0), KEY, "minval=jnp.float32(-1.0))"
    ),
    "normal": one(lambda k: jax.random.normal(k, (3,)), KEY, "return jax.random.normal("),
    "dropout": two(
        lambda x, k: jnp.where(jax.random.bernoulli(k, 0.3, x.shape), x, 0), X, KEY, "jax.random.bernoulli("
    ),
    "integers": one(lambda k: jax.random.randint(k, (5,), -3, 9), KEY, "jax.random.randint("),
    "split key": one(jax.random.split, KEY, "return jax.random.split("),
    "three keys": one(lambda k: jax.random.split(k, 3), KEY, "jax.random.split(k, num=3)"),
    "fold in": one(lambda k: jax.random.fold_in(k, 7), KEY, "jax.random.fold_in("),
    "permutation": one(lambda k: jax.random.permutation(k, 8), KEY, "jax.random.permutation("),
    "Gumbel": one(lambda k: jax.random.gumbel(k, (4,)), KEY, "jax.random.gumbel("),
    "truncated": one(lambda k: jax.random.truncated_normal(k, -2.0, 2.0, (4,)), KEY, "jax.random.truncated_normal("),
    "half precision": one(lambda k: jax.random.normal(k, (4,), "bfloat16"), KEY, "dtype=jnp.bfloat16"),
    "row": one(lambda x: x[1] + x[-1], X, "return x[1] + x[3]"),
    "part of a row": one(lambda x: x[2, 1:3], X, "return x[2, 1:3]"),
    "column as a matrix": one(lambda x: x[:, 3][:, None], X, "return x[:, 3][:, None]"),
    "dynamic row": two(lambda x, i: lax.dynamic_index_in_dim(x, i, 1, False), X, 2, "axis=1, keepdims=False)"),
    "rows from an index": two(
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 2), X, -2, "lax.dynamic_slice_in_dim(x, i, 2)"
    ),
    "update": two(lambda x, i: lax.dynamic_update_slice(x, x[:1, :2], (i, i)), X, -1, "x[:1, :2], (i, i))"),
    "shifts": one(lambda x: (x << 3) ^ (x >> 1), BITS, "return x << 3 ^ x >> 1"),
    "signed shift": one(lambda x: x >> 1, BITS.astype(np.int32) - 9, "return x >> 1"),
    "logical shift of signed": one(
        lambda x: lax.shift_right_logical(x, jnp.int32(1)), BITS.astype(np.int32) - 9, "shift_right_log"
    ),
    "product in another order": two(lambda x, y: jnp.einsum("ab,cb->ca", x, y), X, Y, "return y @ x.T"),
    "gradient of a product": two(jax.grad(lambda w, x: ((x @ w) ** 2).sum()), X.T, X, "return x.T @ "),
    "batched, transposed": two(
        lambda x, y: jnp.einsum("abc,adc->dba", x, y),
        X.reshape(4, 2, 3),
        Y.reshape(4, 2, 3),
        'return jnp.einsum("abc,adc->bda", y, x)',
    ),
    "pairs": two(lambda x, y: x[:, None] - y[None], X, Y, "return x[:, None] - y"),
    "pairs of sides": two(lambda x, y: x[:, None] * y + x[0], STATS, STATS, "return x[:, None] * y + x[0]"),
    "compared with a column": one(lambda x: jnp.where(x[:, :1] < x[0], 1.0, 2.0), X, "x[:, :1] < x[0]"),
    "nested": two(lambda x, y: jnp.tanh(jnp.sin(x) @ y.T) * 2, X, Y, "return jnp.tanh(jnp.sin(x) @ y.T) * 2.0"),
    "branches by a boolean": two(
        lambda x, p: lax.cond(p > 1, jnp.sin, jnp.cos, x), X, 2, "return lax.cond(p > 1, if_true, if_false)"
    ),
    "branches by an integer": two(lambda x, p: lax.switch(p, [jnp.sin, jnp.cos], x), X, 2, "return lax.switch("),
    "elements": two(lambda x, i: x[i, i], X, PLACES, "return x.at[i, i].get("),
    "elements of matrices": two(lambda x, i: x[:, i, i], X.reshape(2, 3, 4), PLACES % 3, "return x.at[:, i, i].get("),
    "elements that are set": two(lambda x, i: x.at[i, i].set(2.0), X, PLACES, "x.at[i, i].set(jnp.float32(2.0), mode="),
    "sums of elements": two(lambda x, i: x.at[i, i + 1].add(2.0), X, PLACES, "x.at[i, add].add("),
    "every pair of rows and columns": two(lambda x, i: x[i[:, None], i], X, PLACES, "x.at["),
    "identity": one(lambda x: x @ jnp.eye(6), X, "return x @ jnp.eye(6, 6, dtype=jnp.float32)"),
    "lower triangle": one(
        lambda x: jnp.where(row_of(x) >= column_of(x), x, -x), X, "jnp.where(jnp.tri(4, 6, dtype=jnp.bool_), x"
    ),
    "powers": two(lambda x, y: jnp.abs(x) ** y, X, Y, "return jnp.power(jnp.abs(x), y)"),
    "powers of a number": one(lambda x: 2.0**x, X, "return jnp.power(2.0, x)"),
    "loop to a computed bound": two(
        lambda x, n: lax.fori_loop(0, n + 1, lambda i, x: jnp.sin(x) + i, x),
        X,
        2,
        "return lax.fori_loop(0, n + 1, body, x)",
    ),
    "counter after a loop": two(
        lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
        X,
        -1,
        "jnp.maximum(0, n)",
    ),
    "exclusive or": one(lambda x: lax.reduce_xor(x, (1,)), BITS, "return lax.reduce_xor(x, (1,))"),
    "exclusive or along a window": one(
        lambda x: lax.reduce_window(x, np.uint32(0), lax.bitwise_xor, (1, 2), (1, 1), "VALID"), BITS, "lax.bitwise_xor"
    ),
    "limits": one(
        lambda x: lax.clamp(jnp.zeros_like(x), x, jnp.ones_like(x)), X, "jnp.float32(0.0), x, jnp.float32(1.0))"
    ),
    "algorithm": two(
        lambda x, y: jnp.einsum("ab,cb->ac", x, y, precision="BF16_BF16_F32"),
        X,
        Y,
        "precision=lax.DotAlgorithmPreset.BF16_BF16_F32",
    ),
    "algorithm of three products": two(
        lambda x, y: jnp.einsum("ab,cb->ac", x, y, precision="BF16_BF16_F32_X3"), X, Y, "BF16_BF16_F32_X3"
    ),
    "variables that are unpacked": one(
        unpacked, X, "return jnp.where(third > fourth, third * second, fourth * second)"
    ),
    "returned tuple": one(lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x), X, "return lax.scan("),
}
"""Functions, their arguments, and what is printed for them."""


@pytest.mark.parametrize("name", sample(IDIOMS, one_in=4))
def test_idioms_are_printed_and_equal(name: str) -> None:
    function, args, expected = IDIOMS[name]
    assert expected in check(function, *args)


def first_two(y: Any) -> Any:
    return lax.top_k(y, 2)


def eigenvectors(y: Any) -> Any:
    return tuple(jnp.linalg.eigh(y @ y.T))


@pytest.mark.parametrize("function", [first_two, eigenvectors])
def test_several_results_of_one_call_are_a_tuple(function: Function) -> None:
    """`lax.top_k` and custom calls return lists, which the specs of results do not match."""
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec())
    lowered = sdy.jit(function).lower(jax.device_put(X, sharding))
    names: dict[str, Any] = {}
    exec(lowered.to_python(), names)
    for result, expected in zip(names[function.__name__](X), jax.jit(function)(X), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_scalars_that_constants_determine_are_numbers() -> None:
    """JAX computes the divisor of a variance, 6 - 0, and selects NaN if it is not positive."""

    def scaled(x: jax.Array) -> jax.Array:
        return jnp.sum(x / jnp.sqrt(x.var(1, keepdims=True) + 1))

    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec("data"))
    text = sdy.jit(jax.grad(scaled)).lower(jax.device_put(X, sharding)).to_python()
    assert "jnp.nan" not in text
    assert "jnp.mean(lax.square(" in text


def test_updates_of_parameters_are_no_layers() -> None:
    """A call would have more arguments and results than the update of a layer has operations."""

    def update(params: Any, gradients: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    layer = {name: np.ones(size, np.float32) for size, name in enumerate("abcdef", 2)}
    text = sdy.to_python(sdy.from_jax(update, [layer] * 3, [layer] * 3))
    assert text.count("def ") == 1


CALLS = (
    "jax.nn.gelu(y)",
    "jax.nn.gelu(y, approximate=False)",
    "jax.nn.hard_swish(y)",
    "jax.nn.leaky_relu(y)",
    "jax.nn.log_sigmoid(y)",
    "jax.nn.log_softmax(y, axis=1)",
    "jax.nn.logsumexp(y, axis=1)",
    "jax.nn.mish(y)",
    "jax.nn.selu(y)",
    "jax.nn.sigmoid(y)",
    "jax.nn.silu(y)",
    "jax.nn.softmax(y, axis=1)",
    "jax.nn.softplus(y)",
    "jnp.linalg.norm(y, axis=1)",
    "jnp.mean(y, axis=1, keepdims=True)",
    "jnp.std(y, axis=1)",
    "jnp.var(y, axis=1, keepdims=True)",
)
"""Calls of functions of JAX that are none in what a device runs, where they are printed all the same."""


@pytest.mark.parametrize("called", sample(CALLS, one_in=4))
def test_what_a_device_runs_calls_the_same_functions(called: str) -> None:
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec("data"))
    function = eval(f"lambda y: (jnp.sin({called}), y)", {"jax": jax, "jnp": jnp})
    function.__name__ = "program"
    text = sdy.jit(function).lower(jax.device_put(X, sharding)).to_python()
    names: dict[str, Any] = {}
    exec(text, names)
    assert called in text
    for result, expected in zip(names["program"](X), jax.jit(function)(X), strict=True):
        np.testing.assert_array_equal(result, expected)


OTHERS: dict[str, Case] = {
    "softmax without the guard": one(softmax_by_hand, X, "softmax"),
    "softmax over two dimensions": one(
        lambda x: jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x - x.max(1, keepdims=True)).sum(0), X, "softmax"
    ),
    "softmax whose gradient needs its parts": one(jax.grad(lambda x: (jax.nn.softmax(x) ** 2).sum()), X, "softmax"),
    "mean with another divisor": one(lambda x: x.sum(0) / 3, X, "mean"),
    "mean whose sum is used": one(sum_and_mean, X, "mean"),
    "sigmoid with another constant": one(lambda x: 1 / (2 + jnp.exp(-x)), X, "sigmoid"),
    "index with another size": two(
        lambda x, i: lax.dynamic_slice(x, (jnp.where(i < 0, i + 3, i), 0), (1, 6)),
        X,
        -1,
        "dynamic_slice_in_dim(x, i, 1)",
    ),
    "index of another": two(
        lambda x, i: lax.dynamic_slice(x, (jnp.where(i[1] < 0, i[0] + 4, i[0]), 0), (1, 6)),
        X,
        np.array([1, 0], np.int32),
        "dynamic_slice_in_dim(x, i[0], 1)",
    ),
    "branches by an integer": two(lambda x, p: lax.switch(p, [jnp.sin, jnp.cos], x), X, -1, "lax.cond"),
    "upper triangle": one(lambda x: jnp.where(row_of(x) <= column_of(x), x, -x), X, "jnp.tri"),
    "diagonal above": one(lambda x: x @ jnp.eye(6, k=1), X, "jnp.eye"),
    "loop to a bound that changes": two(
        lambda x, n: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1] - 1, c[2] * 2), (0, n, x)),
        X,
        5,
        "fori_loop",
    ),
    "loop to a bound in the state": two(
        lambda x, n: lax.while_loop(lambda c: c[0] < c[1].sum() + n, lambda c: (c[0] + 1, c[1] * 0.5), (0, jnp.abs(x))),
        X,
        1,
        "fori_loop",
    ),
    "power to a number": one(lambda x: jnp.abs(x) ** 2.5, X, "jnp.power"),
    "slices at two indices": two(
        lambda x, i: jax.vmap(lambda i: lax.dynamic_slice(x, (i, i), (1, 2)))(i), X, PLACES, "x.at["
    ),
    "product that is also used": two(lambda x, y: (jnp.einsum("ab,cb->ac", x, y), (x @ y.T).T), X, Y, "y @ x.T"),
    "value with two uses": one(two_uses, X, "jnp.tanh(x * x"),
}
"""Functions that are near an idiom, their arguments, and what is not printed for them."""


@pytest.mark.parametrize("name", sample(OTHERS, one_in=3))
def test_what_is_near_an_idiom_is_printed_as_it_is(name: str) -> None:
    function, args, other = OTHERS[name]
    assert other not in check(function, *args)
