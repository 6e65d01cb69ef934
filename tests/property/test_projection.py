"""Index projections: the design document's examples, and properties compared with an enumeration of all points."""

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdy.blocks.projection import Projection
from sdy.box import Box


def enumerated(projection: Projection, block: Box) -> set[tuple[int, ...]]:
    """Return the elements that one step of a block touches, by enumeration."""
    return {element for point in block.points() for element in projection(point).points()}


def bounds(elements: set[tuple[int, ...]]) -> Box:
    array = np.array(sorted(elements))
    return Box.of(array.min(axis=0), array.max(axis=0) + 1)


@st.composite
def projections(draw: st.DrawFn, index_rank: int | None = None, rank: int | None = None) -> Projection:
    index_rank = draw(st.integers(1, 3)) if index_rank is None else index_rank
    rank = draw(st.integers(1, 2)) if rank is None else rank
    vectors = st.lists(st.integers(-3, 3), min_size=rank, max_size=rank)
    matrix = [draw(vectors) for _ in range(index_rank)]
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    return Projection.of(matrix, shape, draw(vectors), draw(vectors))


@st.composite
def projections_with_block(draw: st.DrawFn) -> tuple[Projection, Box]:
    projection = draw(projections())
    start = draw(st.lists(st.integers(-3, 3), min_size=projection.index_rank, max_size=projection.index_rank))
    shape = draw(st.lists(st.integers(1, 4), min_size=projection.index_rank, max_size=projection.index_rank))
    return projection, Box.of(start, np.add(start, shape))


def test_fixed_view():
    """Every point maps to the same view, full or partial: the design document's zprojection.fixed.f1 and f2."""
    whole, part = Projection.fixed(2, (4, 3)), Projection.fixed(2, (2, 2), offset=(1, 1))
    points = list(Box.of_shape((5, 6)).points())
    assert all(whole(point) == Box.of_shape((4, 3)) for point in points)
    assert all(part(point) == Box.of((1, 1), (3, 3)) for point in points)
    assert whole.overlap((2, 2)).tolist() == [12, 12]


def test_linear_strides():
    """Adjacent points map to adjacent cells: figure zprojection.linear.f1 of the design document."""
    rows = Projection.along(2, (0, None), shape=(1, 3))
    assert rows((4, 2)) == Box.of((4, 0), (5, 3))
    assert rows.image(Box.of((2, 0), (5, 4))) == Box.of((2, 0), (5, 3))
    assert rows.overlap((3, 4)).tolist() == [0, 9]


def test_negative_strides():
    """A later block maps to an earlier position: figure zprojection.linear.f2 of the design document."""
    backwards = Projection.along(1, (0,), strides=(-1,), offset=(9,))
    assert [backwards((i,)).start.tolist() for i in (0, 1, 9)] == [[9], [8], [0]]
    assert backwards.image(Box.of((2,), (5,))) == Box.of((5,), (8,))
    assert backwards.overlap((3,)).tolist() == [0]
    assert backwards == Projection.along(1, (0,)).reversed(0, 10)


def test_axial_reduction():
    """A sum reads a full row for each element of the result."""
    rows = Projection.of([[1, 0]], shape=(1, 7))
    assert rows((3,)) == Box.of((3, 0), (4, 7))
    assert rows.image(Box.of((0,), (4,))) == Box.of_shape((4, 7))


def test_window():
    """A convolution's centered window extends beyond the tensor: figure zprojection.conv.f1 of the design document."""
    window = Projection.along(2, (0, 1), shape=(3, 3), start=(-1, -1))
    assert window((0, 0)) == Box.of((-1, -1), (2, 2))
    assert window.overlap((4, 4)).tolist() == [12, 12]
    assert window.image(Box.of_shape((5, 5))) == Box.of((-1, -1), (6, 6))


def test_window_that_skips():
    """A stride larger than the window skips elements."""
    pooling = Projection.along(1, (0,), shape=(2,), strides=(3,))
    assert pooling.gaps((2,)) == [0]
    assert pooling.gaps((1,)) == []
    assert Projection.along(1, (0,), shape=(2,), strides=(2,)).gaps((5,)) == []


def test_dilated_window():
    """The taps of a dilated kernel are a separate index axis."""
    dilated = Projection.of([[1], [2]], shape=(1,))
    assert dilated.image(Box.of_shape((8, 3))) == Box.of_shape((12,))
    assert dilated.gaps((8, 3)) == []
    assert dilated.gaps((1, 3)) == [0]


@given(projections_with_block())
def test_image_is_the_bounds_of_all_points(case: tuple[Projection, Box]):
    projection, block = case
    assert projection.image(block) == bounds(enumerated(projection, block))
    assert projection.image(block).shape.tolist() == projection.image_shape(block.shape.tolist()).tolist()


@given(projections_with_block())
def test_overlap_with_the_next_block(case: tuple[Projection, Box]):
    projection, block = case
    here = projection.image(block)
    for axis, shared in enumerate(projection.overlap(block.shape.tolist())):
        step = np.eye(projection.index_rank, dtype=np.int64)[axis] * block.shape[axis]
        following = projection.image(block.shifted(step))
        assert shared == len(set(here.points()) & set(following.points()))
        assert shared == here.shared(following)


@given(projections_with_block())
def test_a_step_moves_the_region_by_a_row_of_the_matrix(case: tuple[Projection, Box]):
    projection, block = case
    for point, axis in itertools.product(block.points(), range(projection.index_rank)):
        step = np.eye(projection.index_rank, dtype=np.int64)[axis]
        assert projection(point).shifted(projection.matrix[axis]) == projection(np.add(point, step))


@given(st.data())
def test_composition(data: st.DataObject):
    outer = data.draw(projections(rank=2))
    inner = data.draw(projections(index_rank=2))
    point = data.draw(st.lists(st.integers(-3, 3), min_size=outer.index_rank, max_size=outer.index_rank))
    read = {
        element for middle in outer(point).points() for element in enumerated(inner, Box.of(middle, np.add(middle, 1)))
    }
    assert outer.then(inner)(point) == bounds(read)


@given(st.data())
def test_reversing_a_dimension(data: st.DataObject):
    projection = data.draw(projections())
    dim, size = data.draw(st.integers(0, projection.rank - 1)), data.draw(st.integers(1, 9))
    point = [0] * projection.index_rank
    there = {(*element[:dim], size - 1 - element[dim], *element[dim + 1 :]) for element in projection(point).points()}
    assert projection.reversed(dim, size)(point) == bounds(there)
    assert projection.reversed(dim, size).reversed(dim, size) == projection


@given(projections(index_rank=2), st.integers(1, 3), st.integers(1, 3))
def test_many_blocks_at_once(projection: Projection, rows: int, columns: int):
    blocks = Box.of_shape((4, 5)).blocks((rows, columns))
    images = projection.image(blocks)
    assert list(images) == [projection.image(block) for block in blocks]
    assert sum(blocks.size) == 20


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Projection.of([[1, 0]], shape=(1,)), "a matrix of shape (1, 2)"),
        (lambda: Projection.of([[1]], shape=(0,)), "regions of shape (0,) are empty"),
        (
            lambda: Projection.of([[1]], shape=(1,))((1, 2)),
            "shape (2,) do not match an index space of rank 1",
        ),
        (lambda: Projection.of([[2**62]], shape=(1,))((2,)), "projected coordinates may not fit in 64 bits"),
        (lambda: Projection.of([[2**70]], shape=(1,)), "does not fit in 64 bits"),
        (lambda: Projection.of([[0.5]], shape=(1,)), "are not integers"),
        (lambda: Box.of([3], [3]), "the box from [3] to [3] is empty"),
        (lambda: Box.of_shape((4,)).blocks((0,)), "blocks of shape (0,)"),
    ],
)
def test_refused(wrong: Callable[[], object], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        wrong()
