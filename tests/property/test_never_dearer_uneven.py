"""Programs with uneven dimensions, or fewer rows than shards, receive no more bytes than under `jax.jit`."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from dearer.case import MESHES, Draft, Layout, mesh_of
from dearer.measure import measure
from samples import sample
from sdy.type_helpers import Function
from small_scope.choices import Choices


def every_second(image: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(image, kernel, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))


def with_wide_holes(image: jax.Array, kernel: jax.Array) -> jax.Array:
    dims = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(image, kernel, (1,), "SAME", rhs_dilation=(2,), dimension_numbers=dims)


def sum_of_squares_of_windows(image: jax.Array, kernel: jax.Array) -> jax.Array:
    windows = lax.conv_general_dilated(image, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    return (windows**2).sum()


def sum_of_shifts(x: jax.Array) -> jax.Array:
    padded = jnp.pad(x, ((3, 0), (0, 0)))
    return padded[1:10] + padded[2:11] + padded[:9]


def product_of_chunks(x: jax.Array) -> jax.Array:
    first, *others = jnp.split(x, 4, axis=1)
    for chunk in others:
        first = jnp.sin(first) * chunk
    return first


CASES: dict[str, tuple[str, list[str], list[str], Function[Any]]] = {
    "columns to rows": ("8", ["9, 3, 3/x"], ["9, 3/x, 3"], lambda x: x * 2),
    "even columns to rows": ("8", ["3, 9, 8/x"], ["3/x, 9, 8"], lambda x: x * 2),
    "rows in another order": ("2x2x2", ["7, 4, 2/x.y.z"], ["7, 4, 2/z.y.x"], lambda x: x * 2),
    "gradient of a sum along whole rows": (
        "8",
        ["3/x, 2, 8"],
        ["3/x, 2, 8"],
        jax.grad(lambda x: (lax.cumsum(x % 3, 1, reverse=True) ** 2).sum()),
    ),
    "running minima of two rows a device": ("8", ["4, 9/x, 5"], ["4, 9/x, 5"], lambda x: lax.cummin(x % 3, 1)),
    "running maxima of five of eight devices": ("8", ["3, 9/x"], ["3, 9/x"], lambda x: lax.cummax(x % 3, 1)),
    "running minima split anew": ("4", ["5, 4, 9/x"], ["5/x, 4, 9"], lambda x: lax.cummin(x % 3, 2)),
    "elements taken by one column": (
        "2x4",
        ["9, 8", "9, 1/y.x"],
        ["9, 1/y.x"],
        lambda x, y: jnp.take_along_axis(x, y.astype(int) * 0, 1),
    ),
    "one column to rows": ("4", ["5/x, 9, 1"], ["9, 5, 1/x"], lambda x: x.transpose(1, 0, 2) * 2),
    "rows to one column": ("2x4", ["1/x, 3, 5/y"], ["5, 1/y, 3"], lambda x: x.transpose(2, 0, 1) * 2),
    "shifts before another split": ("2x4", ["5/x, 8/y"], ["5/y, 8/x"], lambda x: jnp.pad(x, ((1, 0), (0, 0)))[:-1]),
    "sum of shifts before another split": ("2x2", ["9, 8/x"], ["9/x, 8"], sum_of_shifts),
    "gradient of a sum of shifts": ("2", ["9/x, 8"], ["9/x, 8"], jax.grad(lambda x: (sum_of_shifts(x) * x).sum())),
    "gradient of products before another split": (
        "2x2x2",
        ["8, 8/x.y, 8"],
        ["8/x.y, 8/z, 8"],
        jax.grad(lambda x: (lax.cumprod(x % 3, 2) ** 2).sum()),
    ),
    "chunks before another split": ("2x2x2", ["8/z, 16/y.x"], ["8, 4/z.y.x"], product_of_chunks),
    "windows before another split": (
        "2x2x2",
        ["9/z, 8"],
        ["9/y.x, 8"],
        jax.grad(lambda x: (lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "VALID") ** 2).sum()),
    ),
    "uneven rows over fewer devices": ("2x2", ["9, 5/y.x"], ["9, 5/y"], lambda x: jnp.roll(x, 3, 0)),
    "uneven rows over more devices": ("2x2", ["9, 5/y"], ["9, 5/y.x"], lambda x: x * 2),
    "elements taken in rows of some devices": (
        "8",
        ["6, 4/x, 8", "6, 4/x, 9"],
        ["6, 4, 9/x"],
        lambda x, y: jnp.take_along_axis(x, y.astype(int) % 8, 2),
    ),
    "strided windows, the kernel split": ("8", ["1, 8/x, 8", "3/x, 8, 8"], ["1, 4/x, 8"], every_second),
    "strided windows of one image, the kernel split": ("8", ["1/x, 8, 8", "4/x, 8, 8"], ["1, 4/x, 8"], every_second),
    "an image on one device, the kernel's features split": (
        "2x4",
        ["1/y, 16, 8", "4/y, 8/x, 8"],
        ["1/x, 16/y, 8"],
        with_wide_holes,
    ),
    "gradient of an image on one device, the kernel's features split": (
        "8",
        ["1, 16, 8", "4, 8/x, 8"],
        ["1/x, 16, 8"],
        jax.grad(sum_of_squares_of_windows),
    ),
    "elements taken where another dimension is split": (
        "4",
        ["8, 7, 5/x", "5, 7/x, 5"],
        ["5, 7, 5"],
        lambda x, y: jnp.take_along_axis(x, y.astype(int) % 8, 0),
    ),
    "results of whole operands, split differently": (
        "8",
        ["4, 5, 9"],
        ["4, 5, 4/x", "4, 5/x, 4"],
        lambda x: lax.top_k(x, 4),
    ),
    "index of the only element, of top_k": ("8", ["5, 9/x, 1"], ["5, 9, 1/x"], lambda x: lax.top_k(x, 1)[1]),
    "index of the only element, of argsort": ("8", ["64/x, 1"], ["64, 1"], lambda x: jnp.argsort(x, 1)),
    "products of rows, uneven": ("8", ["16/x, 1001"], ["1001"], lambda x: jnp.prod(x, 0)),
    "places of the greatest, uneven": ("8", ["16/x, 101"], ["101"], lambda x: jnp.argmax(x, 0)),
    "index of the only element, of argmax": ("8", ["64/x, 1"], ["64"], lambda x: jnp.argmax(x, 1)),
}


class _LaidOut(Draft):
    """Draft with given layouts, of the operands and then of the results."""

    def __init__(self, mesh: str, layouts: Iterable[Layout]) -> None:
        super().__init__(Choices(lambda _: 0), mesh_of(MESHES[mesh]))
        self._given = iter(layouts)

    def layout(self, rank: int) -> Layout:
        return next(self._given)


@pytest.mark.parametrize("name", sample(CASES, one_in=4))
def test_a_program_receives_no_more_than_under_jax_jit(name: str) -> None:
    mesh, operands, results, function = CASES[name]
    draft = _LaidOut(mesh, map(_layout, [*operands, *results]))
    for text in operands:
        draft.operand([int(dim.partition("/")[0]) for dim in text.split(",")])
    measured = measure(draft.case(name, function))
    assert (measured.problem, measured.why) == ("", "")


def _layout(text: str) -> Layout:
    axes = [dim.partition("/")[2] for dim in text.split(",")]
    return tuple(tuple(of_dim.split(".")) if of_dim else () for of_dim in axes)
