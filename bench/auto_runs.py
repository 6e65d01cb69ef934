"""Runs of planned small programs on eight virtual devices, compared with the best expert's layout."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

import sdy
from auto_model_programs import SMALL_MODELS
from sdy.diagnostics import capture
from sdy.dialect.ops import MeshOp
from sdy.ir.editing import insert
from sdy.passes.auto.auto import layout_of, prepared
from sdy.passes.auto.choices import find_choices, find_choices_of_results
from sdy.passes.auto.estimate import Estimator
from sdy.passes.auto.experts import expert_layouts
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.limits import Limits
from sdy.passes.auto.search import Search
from sdy.passes.jax.api.compile import CompiledProgram, compile_unpartitioned
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.program.inputs import NumpyArray, random_inputs, rounded_otherwise
from sdy.passes.jax.program.rounding import Rounding, first_mismatch
from sdy.passes.spmd.costs.hardware import hardware_of

_MESH = sdy.Mesh.of({"data": 4, "model": 2})
_NAME = "mesh"
_SQUARES = "second"
_HARDWARE = hardware_of("cpu-8")


@dataclass(frozen=True)
class Ran:
    """A compiled layout: its name, the bytes received by a device, its peak memory, and a mismatch of its results."""

    name: str
    received: float
    memory: int
    mismatch: str


@dataclass(frozen=True)
class Run:
    """A program run with the plan and with the best expert's layout."""

    name: str
    plan: Ran
    expert: Ran

    def row(self) -> str:
        """Return the row of the Markdown table."""
        figures = [
            f"{self.plan.received:,.0f}",
            f"{self.expert.received:,.0f}",
            f"{self.plan.memory:,}",
            f"{self.expert.memory:,}",
            self.plan.mismatch or "equal",
        ]
        return f"| {self.name} | {' | '.join(figures)} | {self.expert.name} |"


def runs(names: Sequence[str]) -> Iterator[Run]:
    """Plan and run each program."""
    return map(_run, names)


def _run(name: str) -> Run:
    function, arguments = SMALL_MODELS[name]()
    module = sdy.from_jax(function, *arguments)
    unpartitioned = compile_unpartitioned(module)
    inputs = _inputs(unpartitioned)
    expected = _arrays(unpartitioned(*inputs))
    rounding = Rounding.of(module)

    def again(relative: float) -> list[np.ndarray]:
        return _arrays(unpartitioned(*rounded_otherwise(inputs, relative)))

    def run(layout: str, planned: ModuleOp) -> Ran:
        with capture():
            sdy.propagate(planned)
            compiled = sdy.compile(planned)
        results = _arrays(compiled(*inputs))
        wrong = first_mismatch(results, expected, rounding, again)
        mismatch = "" if wrong is None else f"**result {wrong.result}{list(wrong.index)}: {wrong.value}**"
        received = bytes_received(compiled.compiled_text(), _MESH.size)
        return Ran(layout, received, _memory(compiled), mismatch)

    planned_module = module.clone()
    plan = sdy.auto(planned_module, mesh=_MESH, hardware=_HARDWARE)
    return Run(name, run(plan.found_from, planned_module), run(*_by_expert(module)))


def _inputs(unpartitioned: CompiledProgram) -> list[NumpyArray]:
    """Return random arguments, with nonnegative second moments of the optimizer."""
    inputs = random_inputs(unpartitioned.inputs, seed=0)
    return [
        np.abs(array) if f"({_SQUARES}" in port.name else array
        for port, array in zip(unpartitioned.inputs, inputs, strict=True)
    ]


def _by_expert(module: ModuleOp) -> tuple[str, ModuleOp]:
    """Return the name of the experts' layout with the best estimate, and `module` with this layout."""
    local = module.clone()
    insert(MeshOp(_NAME, _MESH), InsertPoint.at_start(local.body.block))
    program = fold(prepared(local))
    choices = find_choices(program, _NAME, _MESH)
    of_results = find_choices_of_results(program, _NAME, _MESH)
    estimator = Estimator(program, _NAME, _HARDWARE)
    search = Search(estimator, choices, of_results, math.inf, Limits(), lambda _: None)
    known = [search.candidate(name, layout) for name, layout in expert_layouts(choices, _MESH, search)]
    best = min(known, key=search.rank)
    layout_of(choices, of_results, search, best).write(local)
    return best.name, local


def _arrays(results: Sequence[jax.Array]) -> list[np.ndarray]:
    return [np.asarray(result) for result in results]


def _memory(compiled: CompiledProgram) -> int:
    peak = compiled.peak_bytes()
    assert peak is not None
    return peak
