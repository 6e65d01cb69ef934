"""Limits of the search of `sdy.auto`: its budget of work, the time limit, and interrupts."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import pytest
from xdsl.dialects.builtin import ModuleOp

import sdy
from descent_programs import train_step
from sdy.passes.auto import limits
from sdy.passes.auto.estimate import Estimate, Estimator
from sdy.passes.auto.plan import Plan
from sdy.passes.auto.truth import LayoutOfModule, PartitionedCost, truth_of
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.tools import sdy_auto

MESH = {"data": 8}
TPU = hardware_of("tpu-v5p")
PROGRAM = train_step(1, 2**12, 256, 1024)

PLAN = """
import sys, time
from pathlib import Path
import sdy
from sdy.passes.auto.estimate import Estimator

estimate, seconds = Estimator.estimate, float(sys.argv[2])

def slow(*arguments):
    time.sleep(seconds)
    return estimate(*arguments)

Estimator.estimate = slow
module = sdy.parse(Path(sys.argv[1]).read_text())
print(sdy.auto(module, mesh={"data": 8}, hardware="tpu-v5p"), sdy.format(module))
"""
"""Prints the plan and the module of a program, after a pause before each estimate."""


def plan_of(text: str = PROGRAM, time_limit: float | None = None) -> Plan:
    return sdy.auto(sdy.parse(text), mesh=MESH, hardware=TPU, time_limit=time_limit)


def test_slow_processes_with_other_hash_seeds_find_the_same_plan(tmp_path: Path) -> None:
    program = tmp_path / "step.mlir"
    program.write_text(train_step(1, 512, 256, 1024))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PLAN, str(program), seconds],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, seconds in (("0", "0"), ("1", "0.003"))
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert outputs[0] == outputs[1]
    assert "layouts estimated" in outputs[0]


def test_a_process_that_planned_other_programs_finds_the_same_plan() -> None:
    first = plan_of()
    plan_of(train_step(1, 512, 128, 512))
    assert str(plan_of()) == str(first)
    assert first.limit_reached is None


def test_the_budget_ends_the_search_alike_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    converged = plan_of()
    monkeypatch.setattr(limits, "BUDGET", 5_000)
    plans = [plan_of(), plan_of()]
    assert str(plans[0]) == str(plans[1])
    assert "stopped by its budget of work: a longer search may find more" in str(plans[0])
    assert converged.estimated > plans[0].estimated


def test_without_time_the_given_shardings_stay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = plan_of(time_limit=0.0)
    assert plan.estimated <= 2
    assert plan.limit_reached == "time limit"
    program = tmp_path / "step.mlir"
    program.write_text(PROGRAM)
    sdy_auto.main([str(program), "--devices", "8", "--time-limit", "0"])
    assert "stopped by the time limit: a longer search may find more" in capsys.readouterr().out


class Interrupted:
    """An estimator that is interrupted after some estimates."""

    def __init__(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.costs: list[StepCost] = []
        estimate = Estimator.estimate

        def interrupted(
            estimator: Estimator, layout: dict[int, sdy.Sharding], is_too_much: Callable[[StepCost], bool]
        ) -> Estimate:
            found = estimate(estimator, layout, is_too_much)
            self.costs.append(found.cost)
            if len(self.costs) == number:
                raise KeyboardInterrupt
            return found

        monkeypatch.setattr(Estimator, "estimate", interrupted)


@pytest.mark.parametrize("number", [5, 40])
def test_an_interrupt_gives_the_best_so_far_without_partitioning(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def partitioned(*_: object) -> None:
        raise AssertionError

    estimator = Interrupted(number, monkeypatch)
    monkeypatch.setattr("sdy.passes.auto.auto.truth_of", partitioned)
    plan = plan_of(train_step(2, 2**16, 1024, 4096))
    assert plan.cost.seconds < plan.others["replicated"].seconds
    assert plan.limit_reached == "interrupt"
    assert len(estimator.costs) <= number + 1  # the best layout is estimated with all arguments settled


def test_an_interrupt_of_one_mesh_leaves_out_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "step.mlir"
    program.write_text(PROGRAM)
    estimator = Interrupted(5, monkeypatch)
    sdy_auto.main([str(program), "--devices", "8"])
    assert len(estimator.costs) <= 6
    assert "stopped by an interrupt" in capsys.readouterr().out


@pytest.mark.parametrize("interrupts", [True, False])
def test_a_limit_while_layouts_are_partitioned_keeps_the_best_of_them(
    interrupts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitioned: list[PartitionedCost] = []

    def limited(
        module: ModuleOp, layout: LayoutOfModule, mesh: str, hardware: Hardware, memory: int | None
    ) -> PartitionedCost:
        if partitioned:
            raise KeyboardInterrupt if interrupts else limits.LimitReachedError
        partitioned.append(truth_of(module, layout, mesh, hardware, memory))
        return partitioned[0]

    monkeypatch.setattr("sdy.passes.auto.auto.truth_of", limited)
    assert plan_of().cost is partitioned[0].cost


def test_a_memory_limit_is_a_size() -> None:
    with pytest.raises(ValueError, match="'0' is not a size"):
        sdy.auto(sdy.parse(train_step(1, 8, 8, 8)), mesh={"x": 2}, memory=0)


def test_a_mesh_of_jax_is_taken() -> None:
    text = train_step(1, 64, 16, 64)
    given = sdy.auto(sdy.parse(text), mesh=jax.sharding.AbstractMesh((4, 2), ("data", "model")), hardware="tpu-v5e")
    assert given.rows == sdy.auto(sdy.parse(text), mesh={"data": 4, "model": 2}, hardware="tpu-v5e").rows
