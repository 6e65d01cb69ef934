"""Comparison of plans for programs of real sizes with layouts of experts."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

import sdy
from auto_model_programs import MODELS
from sdy.dialect.ops import MeshOp
from sdy.formatting import format_bytes
from sdy.ir.editing import insert
from sdy.ir.walking import operations
from sdy.passes.auto.auto import layout_of, prepared
from sdy.passes.auto.choices import find_choices, find_choices_of_results
from sdy.passes.auto.estimate import Estimator
from sdy.passes.auto.experts import expert_layouts
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.limits import Limits
from sdy.passes.auto.plan import Plan
from sdy.passes.auto.search import Search
from sdy.passes.auto.truth import truth_of
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import StepCost

_MACHINES: Sequence[tuple[Mapping[str, int], str]] = (
    ({"data": 4, "model": 2}, "h100-8"),
    ({"data": 8, "model": 8}, "h100-hosts"),
    ({"data": 64, "model": 8}, "tpu-v5p"),
)
_SCARCE = 0.75
"""The memory limit of the second plan, relative to the memory of data parallelism, or else of the first plan."""

_AS_FAST = 1 + 1e-4
"""The ratio up to which step times are equal: among equally fast layouts, the plan prefers less memory."""


@dataclass(frozen=True)
class Planned:
    """The plan of a program on a machine."""

    name: str
    mesh: Mapping[str, int]
    hardware: str
    operations: int
    seconds: float
    plan: Plan | None
    others: Mapping[str, StepCost]
    """The costs of the experts' layouts by their names, partitioned where an estimate is below the plan."""
    problem: str = ""

    @property
    def expert(self) -> tuple[str, StepCost] | None:
        """The fastest of the experts' layouts that fit in memory."""
        if self.plan is None:
            return None
        fitting = [(name, cost) for name, cost in self.others.items() if cost.memory <= self.plan.memory]
        return min(fitting, key=lambda each: each[1].seconds, default=None)

    @property
    def ratio(self) -> float | None:
        """The step time of the plan relative to the best expert's, or None if one of them does not fit in memory."""
        if self.plan is None or self.expert is None or not self.plan.fits:
            return None
        return self.plan.cost.seconds / self.expert[1].seconds

    @property
    def is_wrong(self) -> bool:
        """True if there is no plan, or an expert's layout is better."""
        return self.plan is None or (self.expert is not None and (self.ratio or math.inf) > _AS_FAST)

    def row(self) -> str:
        """Return the row of the Markdown table."""
        mesh = ",".join(f"{name}={size}" for name, size in self.mesh.items())
        cells = [self.name, mesh, self.hardware, f"{self.operations:,}", f"{self.seconds:.1f}"]
        if self.plan is None:
            cells += ["", "", "", "", f"**{self.problem}**"]
        else:
            named, cost = self.expert or ("no expert's layout fits", None)
            fits = "" if self.plan.fits else " **too much**"
            cells += [
                f"{self.plan.cost.seconds * 1e3:.4g}",
                f"{cost.seconds * 1e3:.4g}" if cost else "",
                f"{self.ratio:.3f}" if self.ratio is not None else "",
                f"{format_bytes(self.plan.cost.memory)} of {format_bytes(self.plan.memory)}{fits}",
                named,
            ]
        return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def planned(names: Sequence[str], devices: int | None, time_limit: float | None) -> Iterator[Planned]:
    """Plan each program on each machine, or the one with `devices`: with its full memory, then with less."""
    machines = [each for each in _MACHINES if devices in (None, math.prod(each[0].values()))]
    for name in names:
        for mesh, hardware in machines:
            function, arguments = MODELS[name](math.prod(mesh.values()))
            module = sdy.from_jax(function, *arguments)
            ample = _planned(name, module, mesh, hardware, None, time_limit)
            yield ample
            if ample.plan is not None:
                yield _planned(f"{name}, less memory", module, mesh, hardware, _scarce(ample.plan), time_limit)


def _scarce(plan: Plan) -> int:
    """Return a memory limit in bytes that is too low to replicate the parameters."""
    parallel = [cost.memory for name, cost in plan.others.items() if name.startswith("data parallel")]
    return int(min([plan.memory, *(parallel or [plan.cost.memory])]) * _SCARCE)


def _planned(
    name: str, module: ModuleOp, mesh: Mapping[str, int], hardware: str, memory: int | None, time_limit: float | None
) -> Planned:
    begin, plan, problem = time.process_time(), None, ""
    try:
        plan = sdy.auto(module.clone(), mesh=mesh, hardware=hardware, memory=memory, time_limit=time_limit)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".partition("\n")[0]
    seconds = time.process_time() - begin
    others = dict[str, StepCost]() if plan is None else _others(plan, module.clone(), mesh, hardware)
    return Planned(name, mesh, hardware, len(operations(module)), seconds, plan, others, problem)


def _others(plan: Plan, module: ModuleOp, axes: Mapping[str, int], hardware: str) -> dict[str, StepCost]:
    """Return the costs of the experts' layouts, partitioned where an estimate is below the plan."""
    others = dict(plan.others)
    below = {name for name, cost in others.items() if cost.seconds < plan.cost.seconds and cost.memory <= plan.memory}
    if not below:
        return others
    mesh, device = sdy.Mesh.of(axes), hardware_of(hardware)
    insert(MeshOp("mesh", mesh), InsertPoint.at_start(module.body.block))
    program = fold(prepared(module))
    choices, of_results = find_choices(program, "mesh", mesh), find_choices_of_results(program, "mesh", mesh)
    search = Search(Estimator(program, "mesh", device), choices, of_results, plan.memory, Limits(None), lambda _: None)
    search.estimated([("", {})])  # as in sdy.auto: the costs before decide which layouts are far off
    for each in search.estimated(expert_layouts(choices, mesh, search)):
        if each.name in below:
            others[each.name] = truth_of(module, layout_of(choices, of_results, search, each), "mesh", device).cost
    return others
