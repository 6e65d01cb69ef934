"""Reshards: plans on plain values, and comparison with the C++ passes on the same shardings and programs."""

import itertools
import random
import re
from collections.abc import Callable, Iterator

import pytest

from collective_paths import Collectives
from cxx_versions import SINCE, lacks
from oracle import oracle
from samples import covering, is_thorough
from sdy.axes import AxisRef, merge_sub_axes, total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.common_sharding import common_axes
from sdy.passes.spmd.reshard.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_plan import plan_collectives
from sdy.passes.spmd.reshard.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    AxesPerDim,
    Collective,
    CollectivePermute,
)
from sdy.passes.spmd.reshard.searched_plan import least_elements
from sdy.rule import OpShardingRule

X, Y, Z = AxisRef("x"), AxisRef("y"), AxisRef("z")
CUBE = Mesh.of({"x": 2, "y": 2, "z": 2})
TALL = Mesh.of({"x": 4, "y": 2})
UNEVEN = Mesh.of({"x": 4, "y": 6, "z": 3})


def all_shardings(pieces: list[AxisRef], rank: int, mesh: Mesh) -> list[AxesPerDim]:
    """Return all shardings of a tensor over some of `pieces`."""
    found: dict[AxesPerDim, None] = {}
    for count in range(len(pieces) + 1):
        for order in itertools.permutations(pieces, count):
            for cuts in itertools.combinations_with_replacement(range(count + 1), rank - 1):
                bounds = itertools.pairwise((0, *cuts, count))
                found[tuple(merge_sub_axes(order[start:end], mesh) for start, end in bounds)] = None
    return list(found)


def sampled_pairs(pieces: list[AxisRef], rank: int, mesh: Mesh, count: int) -> list[tuple[AxesPerDim, AxesPerDim]]:
    every = all_shardings(pieces, rank, mesh)
    pairs = list(itertools.product(every, every))
    return random.Random(0).sample(pairs, min(count, len(pairs)))


SAMPLES = [
    (CUBE, [X, Y, Z], (64, 64)),
    (CUBE, [X, Y, Z], (2, 8)),
    (CUBE, [X, Y, Z], (16, 16, 16)),
    (TALL, [AxisRef("x", 1, 2), AxisRef("x", 2, 2), Y], (64, 64)),
    (UNEVEN, [X, AxisRef("y", 1, 2), AxisRef("y", 2, 3), Z], (144, 72)),
    (UNEVEN, [X, AxisRef("y", 1, 3), AxisRef("y", 3, 2), Z], (144, 72, 72)),
]


def joined(axes: tuple[AxisRef, ...], more: tuple[AxisRef, ...], mesh: Mesh) -> tuple[AxisRef, ...]:
    return merge_sub_axes((*axes, *more), mesh)


def carry_out(step: Collective, before: AxesPerDim, mesh: Mesh) -> None:
    """Apply `step`, and check that its kind of collective can do it."""
    match step:
        case AllSlice(axes, after):
            assert after == tuple(joined(old, new, mesh) for old, new in zip(before, axes, strict=True))
        case AllGather(axes, after):
            assert before == tuple(joined(old, gone, mesh) for old, gone in zip(after, axes, strict=True))
        case AllToAll(axes, source, target, after):
            assert source != target
            assert before[source] == joined(after[source], axes, mesh)
            assert after[target] == joined(before[target], axes, mesh)
            assert all(before[d] == after[d] for d in range(len(before)) if d not in (source, target))
        case CollectivePermute(after):
            assert [total_size(dim, mesh) for dim in before] == [total_size(dim, mesh) for dim in after]


@covering
@pytest.mark.parametrize("planner", [plan_collectives, cheapest_plan])
@pytest.mark.parametrize(("mesh", "pieces", "shape"), SAMPLES)
def test_plans_lead_from_source_to_target(
    planner: Callable[[AxesPerDim, AxesPerDim, tuple[int, ...], Mesh], tuple[Collective, ...]],
    mesh: Mesh,
    pieces: list[AxisRef],
    shape: tuple[int, ...],
):
    for source, target in sampled_pairs(pieces, len(shape), mesh, 500 if is_thorough() else 12):
        current = source
        for step in planner(source, target, shape, mesh):
            carry_out(step, current, mesh)
            used = [axis for dim in step.after for axis in dim]
            assert not any(a.overlaps(b) for a, b in itertools.combinations(used, 2))
            current = step.after
        assert current == target, (source, target)


@covering
@pytest.mark.parametrize(("mesh", "pieces", "shape"), SAMPLES)
def test_no_plan_receives_fewer_elements_than_the_bound(mesh: Mesh, pieces: list[AxisRef], shape: tuple[int, ...]):
    for source, target in sampled_pairs(pieces, len(shape), mesh, 500 if is_thorough() else 12):
        least = least_elements(source, target, shape, mesh)
        assert least <= elements_received(cheapest_plan(source, target, shape, mesh), source, shape, mesh)
        assert least_elements(((),) * len(shape), target, shape, mesh) == 0


def test_the_cost_of_each_collective():
    def cost(source: AxesPerDim, step: Collective) -> int:
        return elements_received([step], source, (8, 8), CUBE)

    assert cost(((X,), ()), AllSlice(((Y,), ()), ((X, Y), ()))) == 0
    assert cost(((X, Y), ()), AllGather(((Y,), ()), ((X,), ()))) == 8 * 16
    assert cost(((X, Y), ()), AllToAll((Y,), 0, 1, ((X,), (Y,)))) == 8 * 16 // 2
    assert cost(((X,), ()), CollectivePermute(((Y,), ()))) == 4 * 32  # nothing moves where "x" and "y" agree


@pytest.mark.parametrize(
    ("source", "target", "shardys", "ours"),
    [
        # Another axis sliced.
        (((Z,), ()), ((Y, X), (Z,)), 3072, 2048),
        # Moved together and gathered, not permuted.
        (((Z, Y, X), ()), ((), (Y,)), 8 * 2048, 8 * 1920),
        # From one dimension to the other and back, not permuted.
        (((), (Z, Y), (X,)), ((Z, Y), (X,), ()), 7 * 1024, 5 * 1024),
    ],
)
def test_where_plans_are_cheaper_than_shardys(source: AxesPerDim, target: AxesPerDim, shardys: int, ours: int):
    shape = (64, 64) if len(source) == 2 else (16, 16, 16)
    plans = (planner(source, target, shape, CUBE) for planner in (plan_collectives, cheapest_plan))
    assert [elements_received(plan, source, shape, CUBE) for plan in plans] == [shardys, ours]


@pytest.mark.parametrize("shape", [(64, 64), (16, 16, 16), (2, 16, 16), (8, 8, 8, 8)])
def test_no_sequence_of_collectives_is_cheaper(shape: tuple[int, ...]):
    even = [
        axes
        for axes in all_shardings([X, Y, Z], len(shape), CUBE)
        if not any(size % total_size(dim, CUBE) for size, dim in zip(shape, axes, strict=True))
    ]
    collectives = Collectives(even, shape, CUBE)
    for source in random.Random(0).sample([axes for axes in even if total_size(sum(axes, ()), CUBE) == 8], 1):
        fewest = collectives.received_from(source)
        for target in even:
            plan = cheapest_plan(source, target, shape, CUBE)
            assert elements_received(plan, source, shape, CUBE) == fewest[target], (source, target)


@pytest.mark.parametrize("shape", [(4, 32), (32, 4), (5, 16)])
def test_no_plan_changes_the_padding_of_a_dimension(shape: tuple[int, ...]):
    """4 rows over 8 devices are on the first four; over 4 of them, they would be on every second one."""
    line = Mesh.of({"x": 8})
    assert cheapest_plan(((X,), ()), ((), (X,)), shape, line) == (AllToAll((X,), 0, 1, ((), (X,))),)


def test_another_order_of_devices_takes_a_permute():
    assert plan_collectives(((X,),), ((X,),), (8,), CUBE, reorder_devices=True) == (CollectivePermute(((X,),)),)
    assert plan_collectives(((X,),), ((X,),), (8,), CUBE) == ()


def text_of(axes: AxesPerDim) -> str:
    return f"[{', '.join('{' + ', '.join(map(str, dim)) + '}' for dim in axes)}]"


def text_of_step(step: Collective) -> str:
    after = text_of(step.after)
    match step:
        case AllSlice(axes):
            return f"all_slice {text_of(axes)} -> {after}"
        case AllGather(axes):
            return f"all_gather {text_of(axes)} -> {after}"
        case AllToAll(axes, source, target):
            return f"all_to_all [{text_of((axes,))[1:-1]}: {source}->{target}] -> {after}"
        case CollectivePermute():
            return f"collective_permute -> {after}"


def program_of_reshards(pairs: list[tuple[AxesPerDim, AxesPerDim]], shape: tuple[int, ...], mesh: Mesh) -> str:
    """Return a module with a function `@fN` for the Nth pair, which reshards its argument."""
    tensor = f"tensor<{'x'.join(map(str, shape))}xf32>"
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    functions = [
        f"""func.func @f{index}(%arg0: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, {text_of(source)}>}})
            -> {tensor} {{
          %0 = sdy.reshard %arg0 <@mesh, {text_of(target)}> : {tensor}
          return %0 : {tensor}
        }}"""
        for index, (source, target) in enumerate(pairs)
    ]
    return "\n".join([f"sdy.mesh @mesh = <[{axes}]>", *functions])


def steps_by_function(text: str) -> Iterator[list[str]]:
    """Return the collectives of each function, formatted by `text_of_step`."""
    for function in text.split("func.func")[1:]:
        steps = re.findall(r"= sdy\.(\w+) (\[.*\] )?%\w+ out_sharding=<@mesh, (\[.*\])>", function)
        yield [f"{kind} {parameters}-> {after}" for kind, parameters, after in steps]


# If axis sizes do not divide each other, the C++ pass creates permutes that its own verifier refuses.
@pytest.mark.parametrize(("mesh", "pieces", "shape"), SAMPLES[:4])
def test_plans_are_those_of_shardy(mesh: Mesh, pieces: list[AxisRef], shape: tuple[int, ...]):
    pairs = sampled_pairs(pieces, len(shape), mesh, 600 if is_thorough() else 60)
    theirs = oracle(program_of_reshards(pairs, shape, mesh), "func.func(sdy-reshard-to-collectives)")
    plans = [list(map(text_of_step, plan_collectives(source, target, shape, mesh))) for source, target in pairs]
    differing = [pair for pair in zip(plans, steps_by_function(theirs), strict=True) if pair[0] != pair[1]]
    if differing and not lacks("other plans"):
        pytest.skip(f"the C++ does otherwise: {SINCE['other plans'][1]}")
    assert not differing


MATMUL = OpShardingRule((8, 16, 32), (((0,), (2,)), ((2,), (1,))), (((0,), (1,)),), reduction=(2,))
ADD = OpShardingRule((8, 16), (((0,), (1,)),) * 2, (((0,), (1,)),))


def test_tensors_that_agree_stay_as_they_are():
    tensors = [{0: (X,), 2: (Y,)}, {2: (Y,), 1: ()}, {0: (X,), 1: ()}]
    assert common_axes(tensors, MATMUL, (256, 512, 128), CUBE) == ((X,), (), (Y,))


def test_the_axes_that_fit_the_most_elements_win():
    tensors = [{0: (X,), 2: ()}, {2: (X,), 1: ()}, {0: (X,), 1: ()}]
    assert common_axes(tensors, MATMUL, (256, 128, 64), CUBE) == ((X,), (), ())
    assert common_axes(tensors, MATMUL, (256, 2048, 64), CUBE) == ((), (), (X,))


def test_two_of_three_elementwise_tensors_outvote_the_third():
    tensors = [{0: (X,), 1: ()}, {0: (X,), 1: ()}, {0: (), 1: (X,)}]
    assert common_axes(tensors, ADD, (128, 128, 128), CUBE) == ((X,), ())


def test_one_of_two_tensors_is_kept():
    transpose = OpShardingRule((8, 16), (((0,), (1,)),), (((1,), (0,)),))
    tensors = [{0: (X,), 1: ()}, {0: (Y, Z), 1: ()}]
    assert common_axes(tensors, transpose, (128, 128), CUBE) == ((Y, Z), ())


def test_a_factor_that_must_be_whole_gives_its_axes_to_another():
    sort = OpShardingRule((8, 16), (((0,), (1,)),), (((0,), (1,)),), need_replication=(1,))
    tensors = [{0: (X,), 1: (Y,)}] * 2
    assert common_axes(tensors, sort, (128, 128), CUBE) == ((X, Y), ())
    narrow = OpShardingRule((2, 16), (((0,), (1,)),), (((0,), (1,)),), need_replication=(1,))
    assert common_axes(tensors, narrow, (32, 32), CUBE) == ((X,), ())


def test_a_minor_factor_waits_for_the_major_one():
    reshape = OpShardingRule((4, 4), (((0, 1),),), (((0,), (1,)),))
    tensors = [{0: (), 1: ()}, {0: (), 1: (X,)}]
    assert common_axes(tensors, reshape, (16, 16), CUBE) == ((), ())
