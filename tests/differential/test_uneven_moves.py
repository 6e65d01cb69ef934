"""Reshards, reshapes and transposes of sizes that their axes do not divide: right, and no dearer than `jax.jit`."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import sdy
from dearer.case import MESHES, Draft, Layout, mesh_of
from dearer.measure import measure
from sdy.passes.jax.hlo_received import bytes_received
from small_scope.choices import Choices


class _FixedDraft(Draft):
    """A draft whose layouts are given, the operand's first."""

    def __init__(self, mesh: Mesh, layouts: Iterator[Layout]) -> None:
        super().__init__(Choices(lambda _: 0), mesh)
        self._given = layouts

    def layout(self, rank: int) -> Layout:
        return next(self._given)


def _parse(text: str) -> tuple[tuple[int, ...], Layout]:
    """Return the shape and the layout of, for example, "9/x.y,8": nine rows over two axes, eight columns."""
    dims = [dim.partition("/") for dim in text.split(",")]
    return tuple(int(size) for size, _, _ in dims), tuple(tuple(axes.split(".")) if axes else () for _, _, axes in dims)


def _check(mesh: str, before: str, after: str, function: Callable[[jax.Array], jax.Array]) -> None:
    (shape, layout), (_, new_layout) = _parse(before), _parse(after)
    draft = _FixedDraft(mesh_of(MESHES[mesh]), iter([layout, new_layout]))
    draft.operand(shape)
    measured = measure(draft.case("uneven", lambda x: function(x) * 2))
    assert not measured.problem, measured.why


RESHAPES = {
    "fewer, longer rows": ("8", "9/x,9", "3/x,27"),
    "more, shorter rows": ("4", "3/x,3,3", "9/x,3"),
    "rows of parts as long": ("2x4", "7/x,4,4", "112/x"),
    "rows on some devices only": ("8", "7/x,2", "1/x,1,14"),
    "two rows over four devices": ("4", "2/x,7", "14/x,1"),
    "uneven rows gathered": ("2", "3/x,8,4", "96"),
    "columns gathered": ("8", "5,6/x,7", "5,42"),
    "over two axes, then one": ("2x4", "6/x.y,6,3", "12/x,1,9"),
    "dimensions of two axes that change": ("2x2x2", "2/y.x,6", "12/x,1/y"),
    "replicated to rows on some devices only": ("4", "8,8", "2/x,32"),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_uneven_reshape(name: str) -> None:
    mesh, before, after = RESHAPES[name]
    shape, _ = _parse(after)
    _check(mesh, before, after, lambda x: x.reshape(shape))


RESHARDS = {
    "columns to uneven rows and columns": ("2x4", "9,8,7/x", "9/x,8,7/y"),
    "uneven rows to shorter uneven rows": ("2x2x2", "9/z,8", "9/y.x,8"),
    "rows to rows over fewer devices": ("8", "6/x,35", "6,35"),
    "rows to columns": ("2x4", "7/x.y,9", "7,9/y"),
    "uneven to even": ("2x2x2", "9/x.y,8", "9,8/x.z"),
}


@pytest.mark.parametrize("name", RESHARDS)
def test_uneven_reshard(name: str) -> None:
    _check(*RESHARDS[name], lambda x: x)


def test_uneven_transpose() -> None:
    _check("8", "4/x,5,2", "2,4/x,5", lambda x: x.transpose(2, 0, 1))


def test_uneven_composite() -> None:
    """A composite is split as its uses of the operand are, which an argument of a function cannot be."""
    mesh = mesh_of(MESHES["2x4"])

    def split(x: jax.Array, *axes: str | None) -> jax.Array:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*axes)))

    def products(x: jax.Array) -> jax.Array:
        gram = jax.lax.composite(lambda x: jnp.sin(x) @ x.T, name="my.gram")
        return split(gram(split(x, None, "y")), "x")

    argument = jax.ShapeDtypeStruct((8, 15), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec()))
    ours, theirs = (jit(products).lower(argument).compile() for jit in (sdy.jit, jax.jit))
    assert bytes_received(ours.as_text(), mesh.size) == bytes_received(theirs.as_text(), mesh.size)
