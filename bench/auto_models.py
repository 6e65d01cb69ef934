"""Plans of real programs beside the layouts of experts."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from auto_model_programs import MODELS
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.byte_sizes import format_bytes
from sdy.ir.walking import operations
from sdy.passes.auto.plan import Plan
from sdy.passes.spmd.costs.step_time import StepCost

_MACHINES: Sequence[tuple[Mapping[str, int], str]] = (
    ({"data": 4, "model": 2}, "h100-8"),
    ({"data": 8, "model": 8}, "h100-hosts"),
    ({"data": 64, "model": 8}, "tpu-v5p"),
)
_SCARCE = 0.75
"""Of the memory that data parallelism takes, or the plan where there is none: so much has a program the second time."""

_AS_FAST = 1 + 1e-4
"""Of layouts that are as fast, to so many digits, the plan takes the one that needs less memory."""


@dataclass(frozen=True)
class Planned:
    """What came of a program on a machine."""

    name: str
    mesh: Mapping[str, int]
    hardware: str
    operations: int
    seconds: float
    plan: Plan | None
    problem: str = ""

    @property
    def expert(self) -> tuple[str, StepCost] | None:
        """The best of the layouts of experts that fit."""
        if self.plan is None:
            return None
        fitting = [(name, cost) for name, cost in self.plan.others.items() if cost.memory <= self.plan.memory]
        return min(fitting, key=lambda each: each[1].seconds, default=None)

    @property
    def ratio(self) -> float | None:
        """The step of the plan to that of the best expert, None where one of them does not fit."""
        if self.plan is None or self.expert is None or not self.plan.fits:
            return None
        return self.plan.cost.seconds / self.expert[1].seconds

    @property
    def is_wrong(self) -> bool:
        """Whether there is no plan, or an expert has a better one."""
        return self.plan is None or (self.expert is not None and (self.ratio or math.inf) > _AS_FAST)

    def row(self) -> str:
        """A line of the table."""
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


def planned(names: Sequence[str], devices: int | None, time_limit: float) -> Iterator[Planned]:
    """Each program on each machine, or on that of so many devices: with all its memory, and with less."""
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
    """Bytes that do not do where parameters are replicated."""
    parallel = [cost.memory for name, cost in plan.others.items() if name.startswith("data parallel")]
    return int(min([plan.memory, *(parallel or [plan.cost.memory])]) * _SCARCE)


def _planned(
    name: str, module: ModuleOp, mesh: Mapping[str, int], hardware: str, memory: int | None, time_limit: float
) -> Planned:
    begin, plan, problem = time.process_time(), None, ""
    try:
        plan = sdy.auto(module.clone(), mesh=mesh, hardware=hardware, memory=memory, time_limit=time_limit)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".partition("\n")[0]
    return Planned(name, mesh, hardware, len(operations(module)), time.process_time() - begin, plan, problem)
