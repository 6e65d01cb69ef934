"""The planners choose, without any IR, what Shardy chooses and what receives the least."""

from collections.abc import Sequence

import pytest

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.passes.spmd import planner_of
from sdy.passes.spmd.emit.illegality import Illegality, Reason
from sdy.passes.spmd.least_communication import LeastCommunicationPlanner
from sdy.passes.spmd.plan.planner import Planner, ShardyPlanner
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_steps import Collective
from sdy.passes.spmd.shards.halo import ReadRanges

MESH = Mesh((("x", 2), ("y", 2), ("z", 2)))
X, Y, Z = map(AxisRef, "xyz")
PLANNERS = [ShardyPlanner(), LeastCommunicationPlanner()]


def test_the_option_of_a_pass_selects_the_planner() -> None:
    assert [type(planner_of(option)) for option in (False, True)] == [ShardyPlanner, LeastCommunicationPlanner]


def test_neighbors_send_full_shards_or_needed_rows() -> None:
    window_of_three = ReadRanges.steady(size=16, parts=4, low=0, step=4, length=6, total=16)
    received = [planner.exchange(window_of_three).received for planner in PLANNERS]
    assert received == [3 * 4, 3 * 2]


SOURCE, TARGET, SHAPE = ((Z,), ()), ((Y, X), (Z,)), (8, 8)


def plan(planner: Planner) -> Sequence[Collective]:
    return planner.collectives(SOURCE, TARGET, SHAPE, MESH, reorder_devices=False)


@pytest.mark.parametrize("planner", PLANNERS)
def test_collectives_end_at_the_target(planner: Planner) -> None:
    assert plan(planner)[-1].after == TARGET


def test_the_planner_of_least_communication_receives_less() -> None:
    shardy, least = (elements_received(plan(planner), SOURCE, SHAPE, MESH) for planner in PLANNERS)
    assert least < shardy


def test_only_least_communication_weighs_all_reduces_and_reversals() -> None:
    assert [planner.prefers_all_reduce(reduced=1, scattered=8) for planner in PLANNERS] == [False, True]
    assert [planner.reversal_pays(sent=2.0, gathered=1.0) for planner in PLANNERS] == [True, False]


def test_a_reason_names_its_dimension() -> None:
    assert str(Illegality(Reason.INCOMPATIBLE_DIM, 1)) == "dimension 1 has incompatible shardings"
    assert str(Illegality(Reason.NO_RULE)) == "it has no sharding rule"
