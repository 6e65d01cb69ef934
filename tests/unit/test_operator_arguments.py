"""Annotated operators with arguments other than arrays: containers, random keys, None, numbers; and redefinition."""

import importlib
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jax.tree_util import tree_flatten, tree_unflatten

import sdy
from sdy.operators.arguments import leaves, literal_text
from sdy.operators.call import OperatorCall, parse_call
from sdy.operators.notation import parse_operator
from sdy.rules import AnnotationError

D, M = "data", "model"


class Pair(NamedTuple):
    """Two arrays in a class that is not a plain tuple."""

    w: jax.Array
    b: jax.Array


@sdy.register_op("a b^, c, b^ c -> a c")
def dense(x: jax.Array, p: dict[str, Any]) -> jax.Array:
    return (x @ p["w"] + p["b"]) * p.get("scale", 1.0)


@sdy.register_op("a b, a b -> a b")
def total(x: jax.Array, others: list[jax.Array]) -> jax.Array:
    return sum(others, x)


@sdy.register_op("a b^, c, b^ c -> a c", name="tuple_dense")
def of_tuples(x: jax.Array, p: tuple[Any, tuple[jax.Array, ...]], *, power: float = 1.0) -> jax.Array:
    return (x @ p[1][0] + p[0]) ** power


@sdy.register_op("a b, b -> a b")
def biased(x: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    return x if bias is None else x + bias


@sdy.register_op("1, a^ b^ -> a^ b^")
def dropout(key: jax.Array, x: jax.Array, rate: float = 0.5) -> jax.Array:
    return x * jax.random.bernoulli(key, rate, x.shape)


@sdy.register_op("2, a^ b^ -> a^ b^")
def raw_dropout(key: jax.Array, x: jax.Array) -> jax.Array:
    return x * jax.random.bernoulli(jax.random.wrap_key_data(key), 0.5, x.shape)


@sdy.register_op("a, a b^ -> a, a b^")
def noise_by_row(keys: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    new = jax.vmap(lambda key: jax.random.split(key)[0])(keys)
    return new, x + jax.vmap(lambda key, row: jax.random.normal(key, row.shape))(keys, x)


@sdy.register_op("1, a -> a")
def scaled(h: float, x: jax.Array) -> jax.Array:
    return h * x


@sdy.register_op("a -> a")
def times(x: jax.Array, h: float) -> jax.Array:
    return x * h


def array(*shape: int) -> jax.Array:
    return jnp.asarray(np.sin(np.arange(math.prod(shape), dtype=np.float32) + 1).reshape(shape))


KEY = jax.random.key(3)
ARGUMENTS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "dict": (dense, (array(8, 4), {"w": array(4, 6), "b": array(6)}), {}),
    "dict with a number": (dense, (array(8, 4), {"w": array(4, 6), "scale": 0.5, "b": array(6)}), {}),
    "list with one input": (total, (array(8, 4), [array(8, 4), array(8, 4) + 1]), {}),
    "nested tuples": (of_tuples, (array(8, 4), (array(6), (array(4, 6),))), {"power": 2.0}),
    "optional": (biased, (array(8, 4), array(4)), {}),
    "left out": (biased, (array(8, 4),), {}),
    "None": (biased, (array(8, 4), None), {}),
    "key": (dropout, (KEY, array(8, 4)), {}),
    "key of another kind": (dropout, (jax.random.key(1, impl="rbg"), array(8, 4)), {"rate": 0.25}),
    "data of a key": (raw_dropout, (jax.random.key_data(KEY), array(8, 4)), {}),
    "keys in and out": (noise_by_row, (jax.random.split(KEY, 8), array(8, 4)), {}),
    "number that is a tensor": (scaled, (2.5, array(8)), {}),
    "infinity": (times, (array(8), float("-inf")), {}),
}


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)


def plain(function: Any) -> Callable[..., Any]:
    return function.__wrapped__


def data(tree: Any) -> Any:
    def of(leaf: Any) -> Any:
        return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf

    return jax.tree.map(of, tree)


def is_none(leaf: object) -> bool:
    return leaf is None


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_taken_as_the_function_takes_them(mesh: jax.sharding.Mesh, name: str):
    operator, args, kwargs = ARGUMENTS[name]
    leaf_list, tree = tree_flatten(args, is_leaf=is_none)
    arrays = [index for index, leaf in enumerate(leaf_list) if isinstance(leaf, jax.Array)]

    def call(function: Callable[..., Any]) -> Callable[..., Any]:
        def compute(*given: jax.Array) -> Any:
            changed = dict(zip(arrays, given, strict=True))
            leaves_now = [changed.get(index, leaf) for index, leaf in enumerate(leaf_list)]
            return function(*tree_unflatten(tree, leaves_now), **kwargs)

        return compute

    given: list[jax.Array] = [leaf_list[index] for index in arrays]
    expected = call(plain(operator))(*given)
    split = [
        jax.device_put(each, NamedSharding(mesh, PartitionSpec(D))) if each.shape[:1] == (8,) else each
        for each in given
    ]
    for found in (call(operator)(*given), jax.jit(call(operator))(*split), sdy.jit(call(operator), mesh=mesh)(*split)):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), data(found), data(expected))


def test_an_error_of_jax_names_the_operator() -> None:
    with pytest.raises(TypeError, match="argument to <operator biased> as an abstract array"):
        sdy.jit(biased)(jnp.ones((4, 4)), "no array")


def test_gradients_go_into_containers_and_beside_keys():
    x, p = array(8, 4), {"w": array(4, 6), "b": array(6)}

    def loss(operator: Any, drop: Any) -> Callable[..., Any]:
        def compute(x: jax.Array, p: Any) -> Any:
            return (operator(drop(KEY, x), p) ** 2).sum()

        return compute

    found = jax.jit(jax.grad(loss(dense, dropout), (0, 1)))(x, p)
    expected = jax.grad(loss(plain(dense), plain(dropout)), (0, 1))(x, p)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), found, expected)


def test_mapped_over_keys():
    keys, x = jax.random.split(KEY, 3), array(3, 8, 4)
    np.testing.assert_array_equal(jax.jit(jax.vmap(dropout))(keys, x), jax.vmap(plain(dropout))(keys, x))


def test_arguments_of_different_types_are_different_calls():
    def times_of(h: float) -> Callable[..., Any]:
        return jax.jit(lambda x: times(x, h))

    results = [times_of(h)(jnp.arange(3)) for h in (1, 1.0, True)]
    assert [result.dtype for result in results] == [jnp.int32, jnp.float32, jnp.int32]
    signs = [times_of(h)(jnp.ones(2)) for h in (0.0, -0.0)]
    assert [bool(np.signbit(sign[0])) for sign in signs] == [False, True]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a class": (
        lambda: jax.jit(dense)(array(8, 4), Pair(array(4, 6), array(6))),
        "operator 'dense': argument 'p' is of type Pair and holds arrays: pass them in a dict, list or tuple, or one "
        "by one",
    ),
    "shape within": (
        lambda: dense(array(8, 4), {"w": array(5, 6), "b": array(6)}),
        "operator 'dense': `b` is 4 as dimension 1 of argument 'x', but 5 as dimension 0 of argument 'p['w']'",
    ),
    "too few": (
        lambda: dense(array(8, 4), {"w": array(4, 6)}),
        "operator 'dense': the annotation has 3 inputs, but this call only the arguments 'x', 'p['w']'",
    ),
    "not annotated": (
        lambda: jax.jit(times)(array(8), array(1)),
        "operator 'times': argument 'h' is an array: write its dimensions in the annotation, `1` for a scalar",
    ),
    "no number": (
        lambda: jax.jit(lambda x: times(x, float("nan")))(array(8)),
        "operator 'times': argument 'h' is nan, which can't be written into a program: pass a number, a string, None, "
        "or a tuple, list or dict of such",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call: Callable[[], Any], message: str):
    with pytest.raises(AnnotationError) as raised:
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "value", [{"a": [1, (2.0,), ()], "b": (..., {"c": ...})}, float("inf"), -float("inf"), "text", None, True, 1 + 2j]
)
def test_arguments_are_written_and_read(value: Any):
    call = OperatorCall("f", (("x", value),), version=2)
    assert str(call) == f"f.v2(x={literal_text(value)})"
    assert parse_call(str(call)) == call
    assert dict(parse_call(str(call)).arguments)["x"] == value


def test_leaves_are_in_the_order_of_jax():
    tree = {"b": [1, 2], "a": (3, {"z": 4, "y": 5})}
    assert [leaf for _, leaf in leaves("x", tree)] == jax.tree.leaves(tree)


MISTAKES = {"1m k -> m": 1, "m k+n -> m": 4, "(2h t) -> h": 2, "a^b -> a^": 2, "3* -> 3 *": 1}


@pytest.mark.parametrize("text", MISTAKES)
def test_identifiers_are_apart(text: str):
    with pytest.raises(AnnotationError, match="write a space between identifiers") as raised:
        parse_operator(text)
    assert raised.value.offset == MISTAKES[text]
    assert str(raised.value).endswith(f"\n{text}\n{' ' * MISTAKES[text]}^")


CELL = """
import jax, sdy
@sdy.register_op("{annotation}", name="of_a_cell")
def cell(x: jax.Array) -> jax.Array:
    return x * {factor}
"""


def run_cell(annotation: str, factor: int) -> Any:
    """Define the operator, as an edited notebook cell does when it runs again."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL.format(annotation=annotation, factor=factor), f"<cell {annotation} {factor}>", "exec"), names)
    return names["cell"]


def test_a_cell_is_run_again():
    x = array(4, 2)
    first = run_cell("a b -> a b", 2)
    traced = sdy.from_jax(first, x)
    second = run_cell("a b^ -> a b^", 3)
    both = sdy.from_jax(lambda x: first(x) + second(x), x)
    np.testing.assert_allclose(sdy.interpret(traced, np.asarray(x))[0], 2 * x)
    np.testing.assert_allclose(sdy.interpret(both, np.asarray(x))[0], 5 * x, rtol=1e-6)
    assert [sdy.operator_name(op) for op in both.walk() if sdy.operator_name(op)] == ["of_a_cell", "of_a_cell"]
    np.testing.assert_allclose(jax.jit(first)(x) + jax.jit(second)(x), 5 * x, rtol=1e-6)


def test_a_function_that_makes_operators():
    def power(exponent: int) -> Any:
        @sdy.register_op("a -> a", name="made_power")
        def function(x: jax.Array) -> jax.Array:
            return x**exponent

        return function

    two, three = power(2), power(3)
    found = sdy.jit(lambda x: two(x) + three(x))(array(4))
    np.testing.assert_allclose(found, array(4) ** 2 + array(4) ** 3, rtol=1e-6)


MODULE = """
import jax, sdy
@sdy.register_op("a -> a", name="of_a_module")
def one(x: jax.Array) -> jax.Array:
    return x
"""


def test_a_module_is_imported_again_but_not_another_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "kernels_to_reload.py").write_text(MODULE)
    module = importlib.import_module("kernels_to_reload")
    (tmp_path / "kernels_to_reload.py").write_text(f"# edited\n{MODULE}")
    importlib.reload(module)
    (tmp_path / "other_kernels.py").write_text(MODULE)
    message = "operator 'of_a_module' is registered twice: give one of them another name"
    with pytest.raises(ValueError, match=re.escape(message)):
        importlib.import_module("other_kernels")
    (tmp_path / "twice_in_a_file.py").write_text((MODULE * 2).replace("of_a_module", "twice"))
    with pytest.raises(ValueError, match="operator 'twice' is registered twice"):
        importlib.import_module("twice_in_a_file")
    sys.modules.pop("kernels_to_reload")
