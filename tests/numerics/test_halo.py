"""Halo exchange: programs with windows, pads, slices and reverses along sharded dimensions run on shards.

The interpreter runs them, without compiling; elements received are counted in their text.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jax import lax
from xdsl.dialects.builtin import ModuleOp

import sdy
from partitioned_programs import LINE, Argument, D, M, Program, X, constrain, ints, partitioned, program
from sdy.diagnostics import capture
from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations_of
from sdy.passes.driver import partition, propagate
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.type_helpers import Function

ROWS, ODD = ints((16, 4), D), ints((13, 4))
IMAGES, KERNEL = ints((2, 16, 8, 3), None, D, M), ints((3, 3, 3, 4))
ABOVE, PATCHES, UNEVEN = ints((2, 16, 8, 4), None, D, M), ints((2, 12, 6, 3), None, D, M), ints((2, 13, 5, 4))
LAYOUT = ("NHWC", "HWIO", "NHWC")


def in_shards(x: jax.Array, *axes: Any) -> jax.Array:
    """Constrain `x` to `axes`, and let no later operation use a replicated argument in its place."""
    return lax.optimization_barrier(constrain(x, *axes))


def along_rows(function: Function[Any]) -> Callable[..., Any]:
    """Constrain the first dimension of the argument and the result of `function` to "data"."""

    def run(x: jax.Array, *rest: jax.Array) -> jax.Array:
        return constrain(function(constrain(x, D), *rest), D)

    return run


def in_space(function: Function[Any]) -> Callable[..., Any]:
    """Constrain the two spatial dimensions of the images of `function` to both axes."""

    def run(x: jax.Array, *rest: jax.Array) -> jax.Array:
        return constrain(function(constrain(x, None, D, M), *rest), None, D, M)

    return run


def sums(
    x: jax.Array, size: int, stride: int = 1, padding: tuple[int, int] = (0, 0), dilation: int = 1, holes: int = 1
) -> jax.Array:
    """Sum windows of rows, with initial and padding value 5."""
    rest = x.ndim - 1
    return lax.reduce_window(
        x,
        np.int32(5),
        lax.add,
        (size, *(1,) * rest),
        (stride, *(1,) * rest),
        (padding, *((0, 0),) * rest),
        base_dilation=(dilation, *(1,) * rest),
        window_dilation=(holes, *(1,) * rest),
    )


def pad(x: jax.Array, low: int, high: int, interior: int = 0) -> jax.Array:
    """Pad the rows of `x` with sevens before, after and between them."""
    return lax.pad(x, np.int32(7), ((low, high, interior), *((0, 0, 0),) * (x.ndim - 1)))


def sum_of_shifts(x: jax.Array, count: int) -> jax.Array:
    """Sum all slices of `count` consecutive rows of `x`."""
    return sum((x[first : first + count] for first in range(x.shape[0] - count + 1)), jnp.zeros((), x.dtype))


def convolve(x: jax.Array, kernel: jax.Array, **options: Any) -> jax.Array:
    options = {"window_strides": (1, 1), "padding": "SAME"} | options
    return lax.conv_general_dilated(x, kernel, dimension_numbers=LAYOUT, **options)


def gradient_of_kernel(x: jax.Array, above: jax.Array, padding: Any = ((1, 1), (1, 1)), **options: Any) -> jax.Array:
    """Compute the kernel gradient of a convolution: a convolution of the images with `above` as a large kernel."""
    options = {"window_strides": (1,) * len(padding)} | options
    layout = ("CHWN", "IHWO", "HWNC") if len(padding) == 2 else ("HCN", "HIO", "HNC")
    return lax.conv_general_dilated(x, above, padding=padding, dimension_numbers=layout, **options)


def gradient_of_maxima(x: jax.Array, window: int, stride: int, padding: Any = "VALID") -> jax.Array:
    """Transpose a max pool: add each window's maximum at its position."""

    def maxima(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, -np.inf, lax.max, (window, 1), (stride, 1), padding)

    values, transposed = jax.vjp(maxima, x)
    return transposed(values)[0]


# Each: a program, and the number of elements that a device receives from collective permutes.
PROGRAMS: dict[str, tuple[Program, int]] = {
    "slice": (program(along_rows(lambda x: x[2:14]), ROWS), 4 + 4),
    "slice of what one device has": (program(along_rows(lambda x: x[9:10]), ROWS), 4),
    "slice with a stride": (program(along_rows(lambda x: x[1::2]), ROWS), 0),
    "slice with a stride that moves rows": (program(along_rows(lambda x: x[::3]), ROWS), 4 * 4 + 2 * 4),
    "every other row, one on each device": (
        program(lambda x: constrain(lax.optimization_barrier(constrain(x, X))[::2], X), ints((8, 4)), mesh=LINE),
        4,
    ),
    "second half": (program(along_rows(lambda x: x[8:]), ROWS), 2 * 4 + 2 * 4),
    "uneven slice": (program(along_rows(lambda x: lax.optimization_barrier(x)[2:11]), ODD), 4),
    "pad": (program(along_rows(lambda x: pad(x, 1, 3)), ROWS), 2 * 4),
    "pad that shifts": (program(along_rows(lambda x: pad(x, 1, -1)), ROWS), 4),
    "pad that cuts": (program(along_rows(lambda x: pad(x, -3, -1)), ROWS), 2 * 4),
    "pad between": (program(along_rows(lambda x: pad(x, 1, 2, 2)), ROWS), 4),
    "uneven pad": (program(along_rows(lambda x: pad(x, 2, 2, 1)), ODD), 4),
    "reverse": (program(along_rows(lambda x: x[::-1]), ROWS), 4 * 4),
    "reverse of both dimensions": (program(lambda x: constrain(constrain(x, D, M)[::-1, ::-1], D, M), ROWS), 4 * 2),
    "uneven reverse": (program(along_rows(lambda x: x[::-1]), ODD), 3 * 4 + 4 * 4),
    "rotation": (program(along_rows(lambda x: jnp.roll(x, 1, 0)), ROWS), 4),
    "rotation by more than a part": (program(along_rows(lambda x: jnp.roll(x, 6, 0)), ROWS), 2 * 4 + 2 * 4),
    "uneven rotation": (program(along_rows(lambda x: jnp.roll(2 * x, 2, 0)), ODD), 2 * 4 + 4),
    "rotation of what is whole": (program(along_rows(lambda x: jnp.roll(x, 2, 0)), ODD), 0),
    "rotation of fewer rows than devices": (program(along_rows(lambda x: jnp.roll(2 * x, 1, 0)), ints((3, 4))), 4),
    "rotation to where no row was": (program(along_rows(lambda x: jnp.roll(2 * x, -2, 0)), ints((5, 4))), 2 * 4 + 4),
    "rotation of 3 rows over 8 devices": (
        program(lambda x: constrain(jnp.roll(constrain(2 * x, (D, M)), 2, 0), (D, M)), ints((3, 4))),
        4,
    ),
    "rows beside a single one": (
        program(lambda x, y: constrain(2 * jnp.concatenate([constrain(2 * y, D), x]), D), ROWS, ints((1, 4))),
        2 * 4,
    ),
    "causal shift": (program(along_rows(lambda x: pad(x, 2, 0)[:16]), ROWS), 2 * 4),
    "causal shift without a row in front": (program(along_rows(lambda x: pad(x, 0, 3)[3:]), ROWS), 3 * 4),
    "several shifts of one pad": (program(along_rows(lambda x: sum_of_shifts(pad(x, 2, 0), 16)), ROWS), 2 * 4),
    "gradient of several shifts of one pad": (
        program(
            along_rows(jax.grad(lambda x: (sum_of_shifts(lax.pad(x, 0.0, ((2, 0, 0), (0, 0, 0))), 16) ** 2).sum())),
            Argument((16, 4), (D,)),
        ),
        2 * 2 * 4,
    ),
    "slices at constant places": (
        program(along_rows(lambda x: lax.dynamic_slice_in_dim(x, 2, 12) - lax.dynamic_slice_in_dim(x, 9, 12)), ROWS),
        (1 + 1 + 3 + 1) * 4,  # a row that both slices read is received once
    ),
    "rows of one value in front": (
        program(along_rows(lambda x: jnp.concatenate([jnp.full((2, 4), 7, x.dtype), x[:14]])), ROWS),
        2 * 4,
    ),
    "pad of a slice": (program(along_rows(lambda x: pad(x[:14], 2, 0)), ROWS), 2 * 4),
    "slice of a concatenation": (
        program(along_rows(lambda x: jnp.concatenate([jnp.zeros((1, 4), x.dtype), 2 * x])[:16]), ROWS),
        4,
    ),
    "slices in another order": (
        program(along_rows(lambda x: jnp.concatenate([x[4:9], x[1:3], x[11:16], x[:4]])), ROWS),
        7 * 4,
    ),
    "a row before all": (program(along_rows(lambda x: jnp.concatenate([x[:1] * 2, x])), ROWS), 2 * 4),
    "tensors one after the other": (
        program(lambda x, y: constrain(jnp.concatenate([x, y]), D), ROWS, ROWS),
        2 * 4 * 4,
    ),
    "a tensor after zeros": (
        program(lambda x: constrain(jnp.concatenate([jnp.zeros((1, 4), "int32"), x[:-1]]), D), ROWS),
        4,
    ),
    "a row that is appended": (
        program(lambda x, y: constrain(jnp.concatenate([x, y], 1), D, M)[:, 1:], ints((8, 16), D, M), ints((8, 1), D)),
        2,
    ),
    "tensors of several sizes, some replicated": (
        program(
            lambda x, y, z, w: constrain(jnp.concatenate([x, y, z, w]), D),
            ROWS,
            ints((5, 4)),
            ints((8, 4), D),
            ints((3, 4)),
        ),
        (4 + 3 + 2) * 4,
    ),
    "windows": (program(along_rows(lambda x: sums(x, 3)), ROWS), 2 * 4),
    "windows over the border": (program(along_rows(lambda x: sums(x, 3, 1, (1, 1))), ROWS), 4 + 4),
    "windows with a stride": (program(along_rows(lambda x: sums(x, 3, 2, (1, 0))), ROWS), 4),
    "windows with holes": (program(along_rows(lambda x: sums(x, 3, 2, (1, 0), 2, 3)), ROWS), 2 * 4),
    "uneven windows": (program(lambda x: constrain(sums(in_shards(x, D), 3, 2, (1, 0)), D), ODD), 4),
    "uneven windows side by side": (program(along_rows(lambda x: sums(x, 2, 2)), ODD), 0),
    "sum so far": (program(along_rows(lambda x: jnp.cumsum(x, 0)), ROWS), 2 * 4),
    "convolution": (program(in_space(convolve), IMAGES, KERNEL), 2 * (2 * 4 * 3) + 2 * (2 * 6 * 3)),
    "convolution with a stride": (
        program(in_space(lambda x, k: convolve(x, k, window_strides=(2, 2))), IMAGES, KERNEL),
        2 * 4 * 3 + 2 * 5 * 3,
    ),
    "convolution over holes": (
        program(in_space(lambda x, k: convolve(x, k, lhs_dilation=(2, 2), padding=((1, 2), (1, 2)))), IMAGES, KERNEL),
        2 * 4 * 3 + 2 * 5 * 3,
    ),
    "convolution of split features": (
        program(
            lambda x, k: convolve(constrain(x, None, D, None, M), constrain(k, None, None, M)),
            ints((2, 16, 8, 4), None, D),
            ints((3, 3, 4, 4)),
        ),
        2 * (2 * 8 * 2),
    ),
    "uneven convolution": (
        program(
            lambda x, k: constrain(convolve(in_shards(x, M, D, None, None), k), M, D),
            ints((3, 13, 5, 4)),
            ints((3, 3, 4, 4)),
        ),
        2 * (2 * 5 * 4),
    ),
    # An all-gather of the features receives less than an all-reduce of the results.
    "uneven split features": (
        program(
            lambda x, k: constrain(convolve(in_shards(x, None, D, None, M), constrain(k, None, None, M)), None, D),
            ints((3, 13, 5, 3)),
            KERNEL,
        ),
        2 * (3 * 5 * 3),
    ),
    "convolution of patches": (
        program(in_space(lambda x, k: convolve(x, k, window_strides=(3, 3), padding="VALID")), PATCHES, KERNEL),
        0,
    ),
    "gradient of a kernel": (program(in_space(gradient_of_kernel), IMAGES, ABOVE), 2 * (2 * 4 * 3) + 2 * (2 * 6 * 3)),
    "gradient of a kernel with a stride": (
        program(
            lambda x, a: gradient_of_kernel(x, a, ((0, 1), (1, 1)), rhs_dilation=(2, 1)),
            IMAGES,
            ints((2, 8, 8, 4), None, D, M),
        ),
        2 * 4 * 3 + 2 * (2 * 5 * 3),
    ),
    "gradient of a kernel of patches": (
        program(
            lambda x, a: gradient_of_kernel(x, a, ((0, 0), (0, 0)), rhs_dilation=(3, 3)),
            PATCHES,
            ints((2, 4, 2, 4), None, D, M),
        ),
        0,
    ),
    "gradient of a kernel of images in parts, too": (
        program(gradient_of_kernel, ints((4, 8, 8, 3), D, M), ints((4, 8, 8, 4), D, M)),
        2 * (8 * 3),
    ),
    "gradient of a kernel, uneven": (
        program(lambda x, a: gradient_of_kernel(in_shards(x, None, D), in_shards(a, None, D)), UNEVEN, UNEVEN),
        2 * (2 * 5 * 4),
    ),
    "gradient of maxima": (program(along_rows(lambda x: gradient_of_maxima(x, 2, 2)), Argument((16, 4), (D,))), 0),
    "gradient of maxima over the border": (
        program(along_rows(lambda x: gradient_of_maxima(x, 3, 2, "SAME")), Argument((16, 4), (D,))),
        3 * 4 + 2 * 4 + 3 * 4 + 2 * 4 + 3 * 4,
    ),
    "uneven reshape": (
        program(lambda x: constrain(lax.optimization_barrier(constrain(x, (D, M))).reshape(2, 5), M, D), ints((10,))),
        2 + 1 + 1,
    ),
    "uneven reshape of what all devices have": (
        program(lambda x: constrain(constrain(x, (D, M)).reshape(2, 5), M, D), ints((10,))),
        0,
    ),
    "uneven rows to fewer, longer rows": (
        program(lambda x: constrain(lax.optimization_barrier(constrain(x, D)).reshape(3, 5), D), ints((5, 3))),
        2,
    ),
    "uneven rows in parts as long": (
        program(lambda x: constrain(lax.optimization_barrier(constrain(x, D)).reshape(9, 2), D), ints((3, 3, 2))),
        0,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_receive_what_they_need(name: str):
    program, expected = PROGRAMS[name]
    assert received(check(program)) == expected


def check(program: Program) -> ModuleOp:
    """Check that the partitioned program computes the unpartitioned results, and return it."""
    whole = program.module()
    local = partitioned(whole)
    random = np.random.default_rng(0)
    inputs = [random.integers(-9, 9, each.shape).astype(each.dtype) for each in program.arguments]
    for found, expected in zip(sdy.interpret(local, *inputs), sdy.interpret(whole, *inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
    return local


def received(module: ModuleOp) -> int:
    """Return the number of elements that a device receives at most from the collective permutes of a module."""
    return sum(prod(shape_of(op.result)) for op in operations_of(module, CollectivePermuteOp))


def received_on_average(module: ModuleOp) -> float:
    """Return the number of elements that each of 8 devices receives on average from the collective permutes."""
    permutes = operations_of(module, CollectivePermuteOp)
    return sum(prod(shape_of(op.result)) * op.source_target_pairs.get_shape()[0] for op in permutes) / 8


SIZES = st.integers(1, 23)
SMALL = st.integers(1, 4)
MARGINS = st.integers(-3, 7)


def check_rows(function: Function[Any], size: int) -> None:
    """Check `function` on `size` sharded rows, and that devices receive at most three shards of rows on average."""
    local = check(program(along_rows(function), ints((size, 2))))
    assert received_on_average(local) <= 3 * 2 * -(-size // 4)


@given(SIZES, SIZES, st.integers(0, 22), SMALL)
def test_any_slice(size: int, length: int, start: int, stride: int):
    start = min(start, size - 1)
    check_rows(lambda x: x[start : start + length : stride], size)


@given(st.lists(st.tuples(SIZES, st.booleans()), min_size=2, max_size=4))
def test_any_concatenation(parts: list[tuple[int, bool]]):
    """Concatenate tensors, some sharded, evenly or not, and some replicated."""

    def joined(*tensors: jax.Array) -> jax.Array:
        split = [constrain(x, D) if is_split else x for x, (_, is_split) in zip(tensors, parts, strict=True)]
        return constrain(3 * jnp.concatenate([2 * x for x in split]), D)

    sizes = [size for size, _ in parts]
    local = check(program(joined, *(ints((size, 2)) for size in sizes)))
    assert received(local) <= 3 * 2 * sum(-(-size // 4) for size in sizes)


@given(SIZES, MARGINS, MARGINS, st.integers(0, 3))
def test_any_pad(size: int, low: int, high: int, interior: int):
    if (size - 1) * (interior + 1) + 1 + low + high > 0:
        check_rows(lambda x: pad(x, low, high, interior), size)


RESIZES = st.lists(st.tuples(MARGINS, MARGINS, st.integers(0, 1), st.integers(1, 2), SMALL), min_size=2, max_size=4)


@given(SIZES, RESIZES, st.booleans())
def test_any_slices_and_pads(size: int, resizes: list[tuple[int, int, int, int, int]], is_of_sum: bool):
    """Resize repeatedly with padding values, some of them equal, or sum several pads."""

    def resized(x: jax.Array) -> jax.Array:
        for low, high, interior, stride, value in resizes:
            low, high = max(low, 1 - x.shape[0]), max(high, 1 - x.shape[0])
            if (x.shape[0] - 1) * (interior + 1) + 1 + low + high <= 0:
                continue
            x = lax.pad(x, jnp.int32(value // 3), ((low, high, interior), (0, 0, 0)))
            x = (x + pad(jnp.asarray(y), 0, x.shape[0] - size))[::stride] if is_of_sum else x[::stride]
        return x

    y = np.arange(2 * size, dtype=np.int32).reshape(size, 2)
    check(program(along_rows(resized), ints((size, 2))))


@given(SIZES, SMALL, SMALL, st.tuples(MARGINS, MARGINS), SMALL, SMALL)
def test_any_windows(size: int, window: int, stride: int, padding: tuple[int, int], dilation: int, holes: int):
    if (size - 1) * dilation + 1 + sum(padding) > (window - 1) * holes:
        check_rows(lambda x: sums(x, window, stride, padding, dilation, holes), size)


@given(SIZES, st.sampled_from([4, 8, 12, 7]), SMALL, st.tuples(MARGINS, MARGINS), SMALL, SMALL)
@example(2, 7, 2, (6, 5), 1, 1)
def test_any_gradient_of_a_kernel(
    size: int, window: int, stride: int, padding: tuple[int, int], dilation: int, holes: int
):
    if (size - 1) * dilation + 1 + sum(padding) > (window - 1) * holes:
        check(
            program(
                lambda x, above: gradient_of_kernel(
                    constrain(x, D)[:, :, None],
                    constrain(above, D)[:, :, None],
                    (padding,),
                    window_strides=(stride,),
                    lhs_dilation=(dilation,),
                    rhs_dilation=(holes,),
                ),
                ints((size, 2)),
                ints((window, 2)),
            )
        )


@given(SIZES, st.integers(-23, 23))
def test_any_rotation(size: int, by: int):
    check(program(along_rows(lambda x: jnp.roll(x, by, 0)), ints((size, 2))))


WAYS = st.sampled_from([D, M, (D, M), (M, D)])


@given(st.integers(1, 10), st.lists(WAYS, min_size=2, max_size=4))
def test_any_parts_of_a_size_that_some_axes_divide(size: int, ways: list[Any]):
    def split_in_turn(x: jax.Array) -> jax.Array:
        for axes in ways:
            x = constrain(x, axes) * 2
        return x

    check(program(split_in_turn, ints((4 * size, 2))))


@given(SIZES, SIZES, SMALL)
def test_any_concatenation_with_copies(size: int, other: int, copies: int):
    check(
        program(
            along_rows(lambda x, y: jnp.concatenate([constrain(y, D), *[x] * copies])),
            ints((size, 2)),
            ints((other, 2)),
        )
    )


@given(SIZES, SMALL, SMALL)
def test_any_gradient_of_maxima(size: int, window: int, stride: int):
    if window <= size:
        check(program(along_rows(lambda x: gradient_of_maxima(x, window, stride)), Argument((size, 2))))


@given(SIZES, SIZES)
def test_any_reverse(rows: int, columns: int):
    check(program(lambda x: constrain(constrain(x, D, M)[::-1, ::-1], D, M), ints((rows, columns))))


def test_what_is_too_much_to_exchange_is_told():
    module = program(lambda x: constrain(sums(constrain(x, D), 31, 1, (15, 15)), D), ROWS).module()
    propagate(module)
    with capture() as warnings:
        partition(module)
    assert [warning.message for warning in warnings] == [
        "'stablehlo.reduce_window' op is replicated along the dimensions in which elements change devices "
        "(each device receives 192 bytes more and makes 192 bytes more)"
    ]
