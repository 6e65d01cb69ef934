"""Annotated operators with uneven dimensions, compared with plain JAX, on eight devices.

Each device computes its shard: padded along identifiers that all outputs have, unpadded where the function must not
see padding. In these functions, padding with zeros would change the sums.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy
from samples import covering

D, M = "data", "model"


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)


@sdy.register_op("m k+, k+ n -> m n")
def exp_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.exp(x) @ jnp.cos(w)


@sdy.register_op("a+ b -> a+ b, b")
def exp_and_sum(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.exp(x), jnp.exp(x).sum(0)


@sdy.register_op("a b, b -> a b")
def numbered(x: jax.Array, y: jax.Array, b: int) -> jax.Array:
    assert x.shape[1] == b
    return x * y + jnp.broadcast_to(x[:, :1] * 0, (x.shape[0], b))


@sdy.register_op("a b^ -> a b^")
def halved_until_small(x: jax.Array) -> jax.Array:
    def step(x: jax.Array) -> jax.Array:
        # A row of zeros, such as padding, never satisfies the condition: 0 / 0 is NaN.
        return x * (0.5 * jnp.abs(x) / jnp.abs(x))

    return jax.lax.while_loop(lambda x: ~(jnp.abs(x) <= 1e-3).all(), step, x) * 0 + x


@sdy.register_op("k+ a, k+ -> a", check=False)
def counts(x: jax.Array, ids: jax.Array) -> jax.Array:
    return ((ids[:, None] == 0) & (x < 2)).sum(0, dtype=jnp.int8)


@sdy.register_op("k+ a -> a")
def bfloat16_sum(x: jax.Array) -> jax.Array:
    return jnp.cos(x.astype(jnp.bfloat16)).sum(0)


@sdy.register_op("k+ a -> a")
def complex_sum(x: jax.Array) -> jax.Array:
    return jnp.exp(1j * x).sum(0)


def numbered_by_shape(x: jax.Array, y: jax.Array) -> jax.Array:
    return numbered(x, y, y.shape[0])


Specs = Sequence[tuple[str | tuple[str, ...] | None, ...]]
CASES: dict[str, tuple[Any, Sequence[tuple[int, ...]], Specs]] = {
    "rows": (exp_matmul, [(9, 4), (4, 6)], [(D,), ()]),
    "rows over two axes": (exp_matmul, [(11, 4), (4, 6)], [((D, M),), ()]),
    "fewer rows than devices": (exp_matmul, [(3, 4), (4, 6)], [((D, M),), ()]),
    "one row": (exp_matmul, [(1, 4), (4, 6)], [((M, D),), ()]),
    "rows and columns": (exp_matmul, [(5, 4), (4, 7)], [(D,), (None, M)]),
    "summed": (exp_matmul, [(4, 9), (9, 6)], [(None, D), (D,)]),
    "summed over two axes": (exp_matmul, [(4, 5), (5, 6)], [(None, (D, M)), ((D, M),)]),
    "summed and rows": (exp_matmul, [(7, 5), (5, 6)], [(M, D), (D,)]),
    "parts and sum": (exp_and_sum, [(5, 3)], [(D, M)]),
    "a size as an argument": (numbered_by_shape, [(6, 5), (5,)], [(M, D), (D,)]),
}


def arrays(shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    random = np.random.default_rng(0)
    return [jnp.asarray(random.standard_normal(shape), jnp.float32) for shape in shapes]


def split(mesh: jax.sharding.Mesh, function: Callable[..., Any], specs: Specs) -> Callable[..., Any]:
    """Constrain the arguments of `function` to `specs`, including uneven ones, which jax arrays cannot have."""

    def compute(*args: jax.Array) -> Any:
        constrained = [
            jax.lax.with_sharding_constraint(arg, NamedSharding(mesh, PartitionSpec(*spec)))
            for arg, spec in zip(args, specs, strict=True)
        ]
        return function(*constrained)

    return compute


def plain(function: Any) -> Callable[..., Any]:
    """Return the registered function."""
    return getattr(function, "__wrapped__", function)


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: sum((result**2).sum() for result in jax.tree.leaves(function(*args)))


def scanned(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*args: jax.Array) -> Any:
        def step(carry: jax.Array, scale: jax.Array) -> tuple[jax.Array, Any]:
            return carry + scale, function(carry, *args[1:])

        return jax.lax.scan(step, args[0], jnp.arange(3.0))

    return compute


def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(x: jax.Array, *rest: jax.Array) -> Any:
        return jax.vmap(function, (0, *[None] * len(rest)))(jnp.stack([x, x + 1, x - 1]), *rest)

    return compute


TRANSFORMS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "plain": lambda f: f,
    "grad": lambda f: lambda *args: jax.grad(loss(f), range(len(args)))(*args),
    "grad of scan": lambda f: lambda *args: jax.grad(loss(scanned(f)), range(len(args)))(*args),
    "vmap": mapped,
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args),
}


@covering
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("name", CASES)
def test_uneven_operators_compute_what_jax_does(
    mesh: jax.sharding.Mesh, name: str, transform: Callable[[Callable[..., Any]], Callable[..., Any]]
):
    operator, shapes, specs = CASES[name]
    args = arrays(shapes)
    function = split(mesh, operator, specs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sdy.ShardingWarning)
        found = sdy.jit(transform(function), mesh=mesh)(*args)
    expected = jax.jit(transform(plain(operator)))(*args)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5), found, expected)


WITHOUT_GRADIENT: dict[str, tuple[Any, Sequence[tuple[int, ...]], Specs]] = {
    "a loop that padding would not end": (halved_until_small, [(5, 3)], [(D,)]),
    "bfloat16": (bfloat16_sum, [(9, 3)], [(D, M)]),
    "complex": (complex_sum, [(9, 3)], [(D, M)]),
}


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_functions_that_would_see_padding(mesh: jax.sharding.Mesh, name: str):
    operator, shapes, specs = WITHOUT_GRADIENT[name]
    args = arrays(shapes)
    found = sdy.jit(split(mesh, operator, specs), mesh=mesh)(*args)
    assert found.dtype == operator(*args).dtype
    np.testing.assert_allclose(found, operator(*args), rtol=2e-2 if name == "bfloat16" else 2e-5)


def test_integers_are_counted_without_padding(mesh: jax.sharding.Mesh):
    x, ids = jnp.ones((5, 3)), jnp.array([0, 1, 0, 2, 0])
    found = sdy.jit(split(mesh, counts, [(D,), (D,)]), mesh=mesh)(x, ids)
    assert found.dtype == jnp.int8
    assert found.tolist() == [3, 3, 3]


def test_each_device_computes_its_part(mesh: jax.sharding.Mesh):
    """The device programs multiply the same shards as plain jax's, and receive the predicted bytes."""
    args = arrays([(1001, 16), (16, 8)])
    texts: list[list[str]] = []
    for function in (exp_matmul, plain(exp_matmul)):
        lowered = sdy.jit(split(mesh, function, [((D, M),), ()]), mesh=mesh).lower(*args)
        texts.append([line for line in lowered.device_text().splitlines() if "dot_general" in line])
    annotated, expected = texts
    assert len(annotated) == len(expected) == 1
    assert "tensor<126x16xf32>" in annotated[0]
    assert "tensor<126x16xf32>" in expected[0]
    account = sdy.account(sdy.jit(split(mesh, jax.grad(loss(exp_matmul)), [((D, M),), ()]), mesh=mesh), *args)
    assert account.compiled is not None
    assert account.bytes_received == account.compiled.bytes_received


@sdy.register_op("(h t) k -> h t k")
def unfolded(x: jax.Array, h: int) -> jax.Array:
    return x.reshape(h, x.shape[0] // h, x.shape[1])


def unfolded_in_six(x: jax.Array) -> jax.Array:
    return unfolded(x, 6)


@sdy.register_op("a b^ -> a b^", check=False)
def in_blocks_of_two(x: jax.Array) -> jax.Array:
    if x.shape[0] % 2:
        raise ValueError(f"rows come by two, not {x.shape[0]}")
    return jnp.flip(x.reshape(-1, 2, x.shape[1]), 1).reshape(x.shape)


WHOLE: dict[str, tuple[Any, tuple[int, ...], Specs, str]] = {
    "a dimension made of two": (
        unfolded_in_six,
        (24, 2),
        [(D,)],
        "`h` of size 6, which its axes do not divide (each device receives 48 bytes more",
    ),
    "a function that does not take the parts": (
        in_blocks_of_two,
        (10, 4),
        [(D,)],
        "`a` of size 10, which its axes do not divide (each device receives 112 bytes more and makes 112 bytes more)",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_cannot_be_padded_is_whole_and_told(mesh: jax.sharding.Mesh, name: str):
    function, shape, specs, message = WHOLE[name]
    (x,) = arrays([shape])
    with pytest.warns(sdy.ComputedWholeWarning) as caught:
        found = sdy.jit(split(mesh, function, specs), mesh=mesh)(x)
    assert any(message in str(warning.message) for warning in caught), [str(w.message) for w in caught]
    np.testing.assert_allclose(found, function(x))
