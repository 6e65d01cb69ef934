"""The algebra of meshes, axes and shardings, against a brute-force model: an axis as a set of prime positions."""

# The tests pass values of wrong types.
# pyright: reportArgumentType=false

import copy
import itertools
import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdy.axes import AxisRef, common_prefix, is_prefix, merge_sub_axes, prefix_without_overlap, subtract, total_size
from sdy.blocks.projection import Projection
from sdy.box import Box, ints
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule
from sdy.sharding import DimSharding, TensorSharding
from sdy.text import format, parse

MESH = Mesh.of({"a": 16, "b": 16})
BITS = 4


def sub_axis(name: str, low: int, high: int) -> AxisRef:
    """Return the part of a 16-device axis with its binary digits from `low` (major) up to but not including `high`."""
    return AxisRef(name) if (low, high) == (0, BITS) else AxisRef(name, 2**low, 2 ** (high - low))


def bits(*axes: AxisRef) -> list[tuple[str, int]]:
    """Return the binary digits that `axes` cover, in order."""
    return [
        (axis.name, bit)
        for axis in axes
        for bit in range(axis.start.bit_length() - 1, axis.end_in(MESH).bit_length() - 1)
    ]


AXES = [sub_axis(n, low, high) for n in "ab" for low, high in itertools.combinations(range(BITS + 1), 2)]
axes = st.sampled_from(AXES)


@st.composite
def disjoint_axes(draw: st.DrawFn) -> tuple[AxisRef, ...]:
    chosen: list[AxisRef] = []
    for axis in draw(st.lists(axes, max_size=4)):
        if not any(axis.overlaps(other) for other in chosen):
            chosen.append(axis)
    return tuple(chosen)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(AXES, AXES)))
def test_axis_algebra_is_that_of_digit_sets(first: AxisRef, second: AxisRef) -> None:
    mine, theirs = bits(first), bits(second)
    common = [bit for bit in mine if bit in theirs]
    assert first.overlaps(second) == bool(common)
    assert first.contains(second) == (set(theirs) <= set(mine))
    assert first.is_prefix_of(second) == (theirs[: len(mine)] == mine)
    assert first.can_coexist(second)
    overlap = first.overlap(second)
    assert (bits(overlap) if overlap else []) == common
    before = list(itertools.takewhile(lambda bit: bit not in theirs, mine))
    prefix = first.prefix_without_overlap(second)
    assert (bits(prefix) if prefix else []) == before
    if first.can_merge(second):
        assert bits(first.merge(second, MESH)) == mine + theirs
    assert bits(*subtract((first,), (second,), MESH)) == [bit for bit in mine if bit not in theirs]


@given(disjoint_axes(), disjoint_axes())
def test_axis_lists(first: tuple[AxisRef, ...], second: tuple[AxisRef, ...]) -> None:
    merged = merge_sub_axes(first, MESH)
    assert bits(*merged) == bits(*first)
    assert not any(a.can_merge(b) for a, b in itertools.pairwise(merged))
    assert total_size(first, MESH) == 2 ** len(bits(*first))
    free = prefix_without_overlap(first, second)
    expected = list(itertools.takewhile(lambda bit: bit not in bits(*second), bits(*first)))
    assert bits(*free) == expected
    shared = common_prefix(first, second)
    assert is_prefix(shared, first)
    assert is_prefix(shared, second)


@pytest.mark.parametrize(("first", "second"), [((1, 2), (1, 3)), ((1, 2), (3, 2)), ((1, 3), (2, 3))])
def test_sub_axes_of_different_factorings_cannot_coexist(first: tuple[int, int], second: tuple[int, int]) -> None:
    a, b = AxisRef("x", *first), AxisRef("x", *second)
    assert not a.can_coexist(b)
    assert a.overlap(b) is None
    assert a.prefix_without_overlap(b) is None


def test_text_of_axes() -> None:
    assert str(AxisRef("x")) == '"x"'
    assert str(AxisRef("x", 2, 4)) == '"x":(2)4'
    assert str(AxisRef('a"b')) == '"a\\22b"'


def test_mesh() -> None:
    mesh = Mesh.of({"data": 4, "model": 2})
    assert mesh.size == 8
    assert mesh.axis_size("model") == 2
    assert mesh.axis_index("model") == 1
    assert mesh.device_order() == tuple(range(8))
    assert "data" in mesh
    assert Mesh().is_empty
    assert Mesh((), (3,)).is_maximal
    assert mesh.same_devices(Mesh.of({"x": 8}))
    assert not mesh.same_devices(Mesh.of({"x": 8}, [1, 0, 2, 3, 4, 5, 6, 7]))
    with pytest.raises(KeyError):
        mesh.axis_size("x")


def test_local_and_global_shapes() -> None:
    mesh = Mesh.of({"data": 4, "model": 2})
    sharding = TensorSharding(
        "mesh", (DimSharding((AxisRef("data"),)), DimSharding(), DimSharding((AxisRef("model"),)))
    )
    assert sharding.local_shape((16, 3, 5), mesh) == (4, 3, 3)
    assert sharding.global_shape((4, 3, 3), mesh) == (16, 3, 6)
    assert sharding.open().close() == sharding
    assert not sharding.is_fully_replicated
    assert TensorSharding.replicated_closed("mesh", 2).is_fully_replicated


@pytest.mark.parametrize(
    "make",
    [
        lambda: AxisRef("a", 1, 2),
        lambda: Mesh.of({"a": 2, "b": 4}, device_ids=range(7, -1, -1)),
        lambda: TensorSharding.of("a", None, ("b", ...)),
    ],
)
def test_equal_values_are_one_object(make: Callable[[], object]):
    value = make()
    assert make() is value
    assert copy.deepcopy(value) is value
    assert pickle.loads(pickle.dumps(value)) is value
    assert TensorSharding.of("a") != TensorSharding.of("a", mesh="other")


TWO = AxisRef("of_two", 1, 2)
MESH_OF_TWO = Mesh.of({"of_two": 2})


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Mesh.of({"of_two": 8 / 4}), "Mesh: 'axes'"),
        (lambda: Mesh.of({"of_two": 2}, [0.0, 1.0]), "Mesh: 'device_ids'"),
        (lambda: Mesh.of({0: 2}), "Mesh: 'axes'"),
        (lambda: Mesh([("of_two", 2)]), "Mesh: 'axes'"),
        (lambda: AxisRef(2), "AxisRef: 'name'"),
        (lambda: AxisRef("of_two", True, 2), "AxisRef: 'pre_size'"),
        (lambda: AxisRef("of_two", 1, 2.0), "AxisRef: 'size'"),
        (lambda: AxisRef(name="of_two", pre_size=1, size=2.0), "AxisRef: 'size'"),
        (lambda: DimSharding(("of_two",)), "DimSharding: 'axes'"),
        (lambda: DimSharding([TWO]), "DimSharding: 'axes'"),
        (lambda: DimSharding((), 1), "DimSharding: 'is_closed'"),
        (lambda: DimSharding((TWO,), True, 1.0), "DimSharding: 'priority'"),
        (lambda: TensorSharding(MESH_OF_TWO.axes), "TensorSharding: 'mesh'"),
        (lambda: TensorSharding("mesh", (TWO,)), "TensorSharding: 'dims'"),
        (lambda: TensorSharding("mesh", (), ("of_two",)), "TensorSharding: 'replicated'"),
        (lambda: TensorSharding("mesh", (), (), DimSharding()), "TensorSharding: 'unreduced'"),
        (lambda: TensorSharding("mesh", reduction="mean"), "TensorSharding: 'reduction'"),
        (lambda: OpShardingRule((2.0,), (), ()), "OpShardingRule: 'factor_sizes'"),
        (lambda: OpShardingRule((2,), (((0.0,),),), ()), "OpShardingRule: 'operands'"),
        (lambda: OpShardingRule((2,), (), ((0,),)), "OpShardingRule: 'results'"),
        (lambda: OpShardingRule((2,), (), (), (False,)), "OpShardingRule: 'reduction'"),
        (lambda: OpShardingRule((2,), (), (), is_custom=1), "OpShardingRule: 'is_custom'"),
        (lambda: Box(np.zeros(2), np.ones(2)), "'start' must be an array of 64-bit integers"),
        (lambda: Projection(np.eye(2), ints([0, 0]), ints([1, 1]), ints([0, 0])), "'matrix' must be an array"),
        (lambda: Projection(ints([[1]]), ints([0]), [1], ints([0])), "'shape' must be an array of 64-bit integers"),
    ],
)
def test_a_value_is_made_of_the_types_it_declares(make: Callable[[], object], field: str):
    with pytest.raises(TypeError, match=re.escape(field)):
        make()


def test_numbers_of_other_types_do_not_find_each_others_values():
    dim = DimSharding((TWO,), True, 1)
    rule = OpShardingRule((2,), (((0,),),), (((0,),),), (), (), (), (), True)
    for wrong in (
        lambda: AxisRef("of_two", 1.0, 2),
        lambda: DimSharding((TWO,), 1, 1),
        lambda: DimSharding((TWO,), True, True),
        lambda: OpShardingRule((2,), (((0,),),), (((False,),),), (), (), (), (), True),
        lambda: OpShardingRule((2,), (((0,),),), (((0,),),), (), (), (), (), 1),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert DimSharding((TWO,), True, 1) is dim
    assert OpShardingRule((2,), (((0,),),), (((0,),),), (), (), (), (), True) is rule
    assert AxisRef("of_two", 1, 2) is TWO
    assert Mesh.of({"of_two": 2}) is MESH_OF_TWO


def test_a_refused_mesh_does_not_stand_for_later_ones():
    with pytest.raises(TypeError):
        Mesh.of({"never_before": 8 / 4})
    assert "never_before" in format(parse('sdy.mesh @mesh = <["never_before"=2]>'))
