"""Operations that select or order elements: equal results, and no more bytes received than with `jax.jit`.

Most cases have uneven dimensions, down to size 1, where one device holds the only element.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh

from dearer.case import MESHES, Array, Case, Draft, Layout, mesh_of
from dearer.measure import measure
from small_scope.choices import Choices

Function = Callable[..., Any]


class _GivenLayouts(Draft):
    """A draft whose shardings of operands, then of results, are fixed."""

    def __init__(self, mesh: Mesh, given: Sequence[Layout]):
        super().__init__(Choices(lambda count: 0), mesh)
        self._given = iter(given)

    def layout(self, rank: int) -> Layout:
        return next(self._given)


def case(mesh: str, function: Function, operands: Sequence[str], results: Sequence[str]) -> Case:
    """Return the program of `function` on operands such as "int32[9/x.y, 4]", with results such as "[4, 9/x]"."""
    parsed = [_parsed(text) for text in (*operands, *results)]
    draft = _GivenLayouts(mesh_of(MESHES[mesh]), [layout for _, _, layout in parsed])
    for dtype, shape, _ in parsed[: len(operands)]:
        draft.operand(shape, dtype, _indices(shape) if dtype == "int32" else None)
    return draft.case("", function)


def _parsed(text: str) -> tuple[str, tuple[int, ...], Layout]:
    dtype, dims = text.rstrip("]").split("[")
    split = [dim.partition("/") for dim in dims.split(", ")] if dims else []
    return (
        dtype,
        tuple(int(size) for size, *_ in split),
        tuple(tuple(axes.split(".")) if axes else () for *_, axes in split),
    )


def _indices(shape: Sequence[int]) -> Array:
    """Return unordered indices, some repeated, some negative or too large."""
    return (np.arange(math.prod(shape)) * 7 % 31 % 12 - 2).reshape(shape)


def top_k(k: int, chosen: slice = slice(None)) -> Function:
    def largest(x: jax.Array) -> tuple[jax.Array, ...]:
        return lax.top_k(x, k)[chosen]

    return largest


def take(dim: int) -> Function:
    def taken_from(x: jax.Array, indices: jax.Array) -> jax.Array:
        return jnp.take(x, indices, axis=dim, mode="clip")

    return taken_from


def elements(x: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    return x[rows, columns]


def gradient_of_elements(x: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    return jax.grad(lambda x: (elements(x, rows, columns) ** 2).sum())(x)


def updated(method: str) -> Function:
    def update(x: jax.Array, indices: jax.Array, rows: jax.Array) -> jax.Array:
        return getattr(x.at[indices], method)(rows)

    return update


def along_rows(x: jax.Array, indices: jax.Array) -> jax.Array:
    return jnp.take_along_axis(x, indices, 1)


def order(x: jax.Array) -> jax.Array:
    return jnp.argsort(x, 0)


CASES: dict[str, tuple[str, Function, list[str], list[str]]] = {
    "top_k of uneven rows": ("2x4", top_k(4, slice(1)), ["bfloat16[3, 5]"], ["[3/y, 4]"]),
    "top_k whose results differ": ("2x4", top_k(5), ["float32[3/x.y, 8]"], ["[3/y, 5]", "[3, 5/x]"]),
    "top_k of one row": ("2x2x2", top_k(2, slice(1)), ["bfloat16[4/y.x.z, 1, 2]"], ["[4, 1/x, 2/z.y]"]),
    "take that keeps rows split": ("8", take(1), ["float32[8/x, 6]", "int32[1/x, 8]"], ["[8, 1, 8/x]"]),
    "elements of columns that indices split": ("2x4", elements, ["float32[5, 2/x.y]", *["int32[6]"] * 2], ["[6/x]"]),
    "an element of each row": ("2x4", along_rows, ["float32[5/y, 6/x]", "int32[5/y, 1/x]"], ["[5, 1/y.x]"]),
    "order of narrow keys": ("2x4", order, ["int8[2, 9/y.x, 7]"], ["[2, 9/x, 7]"]),
    "added rows, two columns over eight devices": (
        "2x4",
        updated("add"),
        ["float32[9/y, 9, 2]", "int32[3/x.y]", "float32[3, 9, 2/x.y]"],
        ["[9/y, 9, 2]"],
    ),
    "greatest rows, one column": (
        "2x2x2",
        updated("max"),
        ["float32[9/y, 2/x, 1/z]", "int32[9/x.y]", "float32[9/x, 2/y, 1]"],
        ["[9, 2/y.z.x, 1]"],
    ),
    "gradient of elements of two rows": (
        "2x2x2",
        gradient_of_elements,
        ["float32[2/y.x, 5/z]", "int32[4]", "int32[4/y.z]"],
        ["[2, 5/y.z.x]"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_on_parts_of_any_size(name: str):
    measured = measure(case(*CASES[name]))
    assert not measured.problem, measured.why
