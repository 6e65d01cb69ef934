"""Plans of `sdy.auto`: alternatives, the Pareto front as a picture, and predicted beside measured costs."""

import pickle
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

import sdy
from descent_programs import train_step
from sdy.passes.auto.front_chart import front_svg
from sdy.passes.auto.plan import Plan
from sdy.passes.auto.what_if import ShardingSpec
from sdy.passes.spmd.costs.step_time import StepCost

MESH = {"data": 4, "model": 2}
BATCH = "argument 2"
REPLICATED_BATCH = {BATCH: (None, None)}


class Compiled(NamedTuple):
    bytes_received: float
    memory: int | None


@pytest.fixture(scope="module")
def plan() -> Plan:
    return sdy.auto(sdy.parse(train_step(1, 2**16, 1024, 4096)), mesh=MESH, hardware="tpu-v5p")


def test_a_plan_tells_what_other_shardings_cost(plan: Plan) -> None:
    alternative = plan.with_(REPLICATED_BATCH)
    assert alternative.changed.memory > alternative.plan.memory
    assert alternative.more_seconds >= 0
    assert alternative.fits
    assert str(alternative).split()[:4] == ["estimated", "step", "time", "received"]
    assert str(plan.with_(REPLICATED_BATCH)) == str(alternative)


def test_the_shardings_of_the_plan_cost_no_more(plan: Plan) -> None:
    chosen = {
        row.names[0]: [[axis.name for axis in axes] for axes in row.sharding.dim_axes]
        for row in plan.rows
        if row.sharding is not None and row.arguments
    }
    assert plan.with_(chosen).more_seconds == 0


def test_axes_may_be_in_another_order_than_in_the_mesh(plan: Plan) -> None:
    reversed_, present = plan.with_({BATCH: [("model", "data")]}), plan.with_({BATCH: [("data", "model")]})
    assert reversed_.changed.memory >= present.changed.memory


@pytest.mark.parametrize(
    ("name", "sharding", "message"),
    [
        ("argumen 2", ("data",), "the plan chooses no sharding for 'argumen 2'; did you mean 'argument 2'?"),
        ("foo", ("data",), "the plan chooses no sharding for 'foo'"),
        (BATCH, ("batch",), "the mesh has no axis 'batch': its axes are data, model"),
        (BATCH, (None, None, "data"), "'argument 2' has 2 dimensions, but the sharding has 3"),
    ],
)
def test_impossible_alternatives_are_refused(plan: Plan, name: str, sharding: ShardingSpec, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message.replace('?', '[?]')}$"):
        plan.with_({name: sharding})


def test_uneven_alternatives_are_refused() -> None:
    plan = sdy.auto(sdy.parse(train_step(1, 36, 18, 36)), mesh=MESH, hardware="tpu-v5p")
    with pytest.raises(ValueError, match=r"^dimension 1 of 'argument 2' of size 18 is not divisible by 4$"):
        plan.with_({BATCH: (None, "data")})


def test_another_process_knows_no_alternatives(plan: Plan) -> None:
    sent = pickle.loads(pickle.dumps(plan))
    assert str(sent) == str(plan)
    with pytest.raises(RuntimeError, match="another process made the plan"):
        sent.with_(REPLICATED_BATCH)


def test_each_row_tells_what_its_runner_up_costs(plan: Plan) -> None:
    (batch,) = [row for row in plan.rows if BATCH in row.names]
    assert batch.more is not None
    assert batch.more_seconds == batch.more.seconds >= -1e-12, "at most a rounding error"
    assert (batch.more.seconds, batch.more.received, batch.more.memory) != (0, 0, 0)
    header = next(line for line in str(plan).splitlines() if "runner-up" in line)
    assert header.split()[-3:] == ["time", "received", "memory"]


def test_predicted_costs_stand_beside_measured_ones(plan: Plan) -> None:
    compiled = Compiled(2 * plan.cost.received, plan.cost.memory)
    step, received, memory = str(plan.compare(compiled)).splitlines()[1:]
    assert step.split()[-1] != "1.00"
    assert received.split()[-1] == "0.50"
    assert memory.split()[-1] == "1.00"
    assert plan.compare(compiled, plan.cost.seconds / 2).seconds == plan.cost.seconds / 2
    assert "2.00" in str(plan.compare(compiled, plan.cost.seconds / 2))
    assert str(plan.compare(Compiled(0.0, None))).count(" 1.00") == 0


def circles(svg: str) -> list[str | None]:
    """Return the classes of the points of a picture, which must be well-formed."""
    return [each.get("class") for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}circle")]


@pytest.mark.parametrize("memories", [[8], [8, 4], [2**34, 2**33, 2**20], [0]])
def test_the_front_is_drawn(memories: Sequence[int]) -> None:
    front = [StepCost(1e-3 * (1 + number), {}, memory) for number, memory in enumerate(memories)]
    assert circles(front_svg(front, front[0], 2**40)) == ["plan", *["point"] * (len(front) - 1)]


def test_the_limit_is_drawn_within_the_range_of_the_front() -> None:
    front = [StepCost(1.0, {}, 80), StepCost(2.0, {}, 20)]
    assert 'class="limit"' in front_svg(front, front[0], 50)
    assert 'class="limit"' not in front_svg(front, front[0], 500)


def test_the_picture_of_a_plan_has_the_points_of_its_front(plan: Plan) -> None:
    assert len(circles(plan.pareto_svg())) == len(plan.pareto())
