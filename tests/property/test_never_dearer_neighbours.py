"""Operations with halo exchanges receive no more bytes than under `jax.jit`: shared reshards, and shardings."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from dearer.case import mesh_of
from samples import sample
from sdy.passes.jax.hlo_received import bytes_received
from sdy.type_helpers import Function


def shift(x: jax.Array) -> jax.Array:
    return jnp.concatenate([jnp.zeros((3, 8)), x[:-3]])


def pooled(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (4, 1), (1, 1), "VALID")


def shift_product(x: jax.Array) -> jax.Array:
    return (shift(x) * x).sum()


def padded_product(x: jax.Array) -> jax.Array:
    return (jnp.pad(x, ((1, 0), (0, 0)))[:-1] * x).sum()


def scaled_shifts(x: jax.Array) -> jax.Array:
    return jnp.pad(x, ((1, 0), (0, 0)))[:-1] * 2 + jnp.pad(x * 3, ((0, 1), (0, 0)))[1:]


def pooled_sum(x: jax.Array) -> jax.Array:
    return pooled(x).sum()


def squares_of_maxima(x: jax.Array) -> jax.Array:
    return (lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (2, 1), "VALID") ** 2).sum()


def squares_of_minima(x: jax.Array) -> jax.Array:
    return (lax.cummin(x, 0) ** 2).sum()


def convolved(image: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(image, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))


def dilated(image: jax.Array, kernel: jax.Array) -> jax.Array:
    dims = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(image, kernel, (1,), "SAME", rhs_dilation=(2,), dimension_numbers=dims)


def gradient_of_kernel(convolution: Callable[[jax.Array, jax.Array], jax.Array]) -> Function[Any]:
    return jax.grad(lambda image, kernel: (convolution(image, kernel) ** 2).sum(), argnums=1)


def product_of_segments(x: jax.Array, segments: jax.Array) -> jax.Array:
    return jax.ops.segment_prod(x % 3, segments.astype(int), num_segments=8)


def squares_of_remainders(x: jax.Array) -> jax.Array:
    return ((x % 3) ** 2).sum()


def every_second(image: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(image, kernel, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))


def rows_of_some_devices(image: jax.Array, kernel: jax.Array) -> jax.Array:
    uneven = NamedSharding(mesh_of((8,)), P(None, "x"))
    return (lax.with_sharding_constraint(every_second(image, kernel), uneven) ** 2).sum()


def every_third(image: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(image, kernel, (3,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))[:, :4]


Arguments: TypeAlias = list[tuple[tuple[int, ...], P]]

CASES: dict[str, tuple[tuple[int, ...], Function[Any], Arguments, P]] = {
    "two slices share a reshard": ((4,), lambda x: x[1:] - x[:-1], [((9, 8), P(None, "x"))], P("x")),
    "a product by one": ((4,), jax.grad(shift_product), [((8, 8), P("x"))], P(None, "x")),
    "maxima and their gradient share a reshard": (
        (2,),
        jax.grad(squares_of_maxima),
        [((8, 8), P("x"))],
        P(None, "x"),
    ),
    "gradient of a product with a shift before another split": (
        (4,),
        jax.grad(padded_product),
        [((64, 64), P("x"))],
        P(None, "x"),
    ),
    "scaled shifts before another split": ((4,), scaled_shifts, [((64, 64), P("x"))], P(None, "x")),
    "a pad that changes nothing": ((4,), jax.grad(pooled_sum), [((8, 8), P("x"))], P(None, "x")),
    "one row of a stride": ((4,), lambda x: x[::8], [((8, 8), P("x"))], P()),
    "gradient of running minima": ((8,), jax.grad(squares_of_minima), [((8, 8), P("x"))], P("x")),
    "a reverse": ((2, 2, 2), lambda x: x[::-1], [((16, 8), P("x", "z"))], P("y", "x")),
    "features summed for a replicated result": (
        (4,),
        convolved,
        [((1, 8, 8), P(None, None, "x")), ((2, 8, 8), P(None, None, "x"))],
        P(),
    ),
    "features resharded to rows": (
        (4,),
        every_second,
        [((1, 8, 8), P(None, None, "x")), ((2, 8, 8), P())],
        P(None, "x"),
    ),
    "a kernel split by its rows": ((2,), convolved, [((1, 8, 8), P(None, None, "x")), ((8, 8, 8), P("x"))], P()),
    "a halo of most rows": ((2,), convolved, [((1, 8, 8), P(None, "x")), ((8, 8, 8), P())], P(None, "x")),
    "windows of rows that all devices hold": ((4,), convolved, [((1, 8, 8), P()), ((8, 8, 8), P())], P(None, "x")),
    "every third window": ((4,), every_third, [((1, 16, 8), P(None, None, "x")), ((3, 8, 8), P())], P(None, "x")),
    "fewer windows than devices": ((8,), rows_of_some_devices, [((1, 8, 8), P(None, "x")), ((3, 8, 8), P())], P()),
    "fewer windows than devices, features split": (
        (8,),
        rows_of_some_devices,
        [((1, 8, 8), P(None, None, "x")), ((2, 8, 8), P())],
        P(),
    ),
    "log-sum-exps split anew": ((2, 2), lax.cumlogsumexp, [((8, 16), P(("y", "x")))], P(None, "x")),
    "elements that all devices hold": ((8,), product_of_segments, [((16,), P()), ((16,), P("x"))], P()),
    "two selects share the reshard of their mask": (
        (2, 4),
        jax.grad(squares_of_remainders),
        [((8, 16), P("y"))],
        P("x"),
    ),
    "two convolutions share an image, one feature a device": (
        (8,),
        gradient_of_kernel(convolved),
        [((1, 16, 8), P(None, None, "x")), ((4, 8, 8), P())],
        P(None, None, "x"),
    ),
    "two convolutions share an image, one row a device": (
        (8,),
        gradient_of_kernel(convolved),
        [((1, 8, 8), P(None, "x")), ((8, 8, 8), P())],
        P(None, None, "x"),
    ),
    "two strided convolutions share an image": (
        (8,),
        gradient_of_kernel(every_second),
        [((1, 8, 8), P(None, None, "x")), ((3, 8, 8), P(None, None, "x"))],
        P(None, None, "x"),
    ),
    "two dilated convolutions share an image": (
        (4,),
        gradient_of_kernel(dilated),
        [((1, 8, 8), P(None, "x")), ((4, 8, 8), P())],
        P(None, None, "x"),
    ),
    "windows of an image that its gradient gathers": (
        (4,),
        gradient_of_kernel(dilated),
        [((1, 8, 8), P(None, "x")), ((4, 8, 8), P())],
        P(),
    ),
    "partial sums of a kernel larger than its operands": (
        (4,),
        gradient_of_kernel(dilated),
        [((1, 8, 8), P(None, "x")), ((4, 8, 8), P("x"))],
        P(),
    ),
    "a split window": ((4,), convolved, [((1, 8, 8), P()), ((4, 8, 8), P("x"))], P(None, None, "x")),
}


@pytest.mark.parametrize("case", sample(CASES, one_in=4))
def test_devices_receive_no_more_than_under_jax_jit(case: str) -> None:
    sizes, function, arguments, result = CASES[case]
    mesh = mesh_of(sizes)
    operands = [np.arange(np.prod(shape), dtype="float32").reshape(shape) % 11 for shape, _ in arguments]
    shardings = [NamedSharding(mesh, spec) for _, spec in arguments]
    ours, theirs = (
        jit(function, in_shardings=shardings, out_shardings=NamedSharding(mesh, result)).lower(*operands).compile()
        for jit in (sdy.jit, jax.jit)
    )
    received = [bytes_received(compiled.as_text(), mesh.size) for compiled in (ours, theirs)]
    assert received[0] <= received[1]
    placed = [jax.device_put(x, sharding) for x, sharding in zip(operands, shardings, strict=True)]
    np.testing.assert_allclose(ours(*placed), jax.jit(function)(*operands), rtol=1e-5)
