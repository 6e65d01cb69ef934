"""Comparison of plans for random small programs with the optimum."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

import sdy
from auto_small_programs import SmallProgram, small_program
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.ir.editing import insert
from sdy.mesh import Mesh
from sdy.passes.auto.auto import prepared
from sdy.passes.auto.choices import Choice, find_choices
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.plan import Plan
from sdy.passes.auto.truth import LayoutOfModule, truth_of
from sdy.passes.spmd.costs.hardware import hardware_of, presets
from sdy.passes.spmd.costs.step_time import StepCost

_MESH = "mesh"
_MESHES: Sequence[Mapping[str, int]] = ({"data": 4}, {"data": 8}, {"data": 2, "model": 2}, {"data": 4, "model": 2})
_MOST_LAYOUTS = 300
"""Programs with more layouts are skipped."""


@dataclass(frozen=True)
class Tried:
    """The plan of a program, and its best layout."""

    name: str
    mesh: Mesh
    hardware: str
    layouts: int
    plan: Plan
    chosen: str
    best: StepCost
    best_layout: str

    @property
    def ratio(self) -> float:
        """The step time of the plan relative to that of the best layout."""
        return self.plan.cost.seconds / self.best.seconds


def tried(count: int) -> Iterator[Tried]:
    """Yield `count` deterministic random programs, each with its plan and the best of all its layouts."""
    numbers = iter(range(1_000_000_000))
    while count:
        random = Random(next(numbers))
        program = small_program(random)
        mesh, hardware = Mesh.of(random.choice(_MESHES)), random.choice(presets())
        module = sdy.from_jax(program.function, *program.arguments)
        insert(MeshOp(_MESH, mesh), InsertPoint.at_start(module.body.block))
        choices = find_choices(fold(prepared(module)), _MESH, mesh)
        if 1 < math.prod(len(choice.options) for choice in choices) <= _MOST_LAYOUTS:
            count -= 1
            yield _tried(program, module, choices, hardware)


def _tried(program: SmallProgram, module: ModuleOp, choices: Sequence[Choice], hardware: str) -> Tried:
    device, mesh = hardware_of(hardware), named_meshes(module)[_MESH]
    plan = sdy.auto(module.clone(), hardware=device)
    layouts = [
        [choice.final(option, option) for choice, option in zip(choices, options, strict=True)]
        for options in product(*(choice.options for choice in choices))
    ]
    costs = [
        truth_of(
            module,
            LayoutOfModule(
                {
                    index: sharding
                    for choice, sharding in zip(choices, layout, strict=True)
                    for index in choice.arguments
                }
            ),
            _MESH,
            device,
        ).cost
        for layout in layouts
    ]
    best = min(range(len(costs)), key=lambda number: (costs[number].memory > plan.memory, costs[number].seconds))
    chosen = " ".join(format_dims(row.sharding) for row in plan.rows)
    best_layout = " ".join(map(format_dims, layouts[best]))
    return Tried(program.name, mesh, hardware, len(layouts), plan, chosen, costs[best], best_layout)
