"""Plans of small programs, compiled by XLA and run on eight virtual devices, beside the best expert's layout."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from auto_model_programs import SMALL_MODELS
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

import sdy
from sdy.diagnostics import capture
from sdy.dialect.ops import MeshOp
from sdy.ir.editing import insert
from sdy.passes.auto.auto import layout_of, prepared
from sdy.passes.auto.choices import find_choices, find_choices_of_results
from sdy.passes.auto.estimate import Estimator
from sdy.passes.auto.experts import expert_layouts
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.search import Search
from sdy.passes.jax.compile import CompiledProgram, compile_unpartitioned
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.inputs import NumpyArray, random_inputs, rounded_otherwise
from sdy.passes.jax.rounding import Rounding, first_mismatch
from sdy.passes.spmd.costs.hardware import hardware_of

_MESH = sdy.Mesh.of({"data": 4, "model": 2})
_NAME = "mesh"
_SQUARES = "second"
_HARDWARE = hardware_of("cpu-8")


@dataclass(frozen=True)
class Ran:
    """A compiled layout: its name, the bytes that a device receives, as XLA has them, its memory, and what is wrong."""

    name: str
    received: float
    memory: int
    mismatch: str


@dataclass(frozen=True)
class Run:
    """A program as planned, and as the best expert would have it."""

    name: str
    plan: Ran
    expert: Ran

    def row(self) -> str:
        """A line of the table."""
        figures = [
            f"{self.plan.received:,.0f}",
            f"{self.expert.received:,.0f}",
            f"{self.plan.memory:,}",
            f"{self.expert.memory:,}",
            self.plan.mismatch or "equal",
        ]
        return f"| {self.name} | {' | '.join(figures)} | {self.expert.name} |"


def runs(names: Sequence[str]) -> Iterator[Run]:
    """Each program, planned and run."""
    return map(_run, names)


def _run(name: str) -> Run:
    function, arguments = SMALL_MODELS[name]()
    module = sdy.from_jax(function, *arguments)
    whole = compile_unpartitioned(module)
    inputs = _inputs(whole)
    expected = _arrays(whole(*inputs))
    rounding = Rounding.of(module)

    def again(relative: float) -> list[np.ndarray]:
        return _arrays(whole(*rounded_otherwise(inputs, relative)))

    def ran(layout: str, planned: ModuleOp) -> Ran:
        with capture():
            sdy.propagate(planned)
            compiled = sdy.compile(planned)
        results = _arrays(compiled(*inputs))
        found = first_mismatch(results, expected, rounding, again)
        mismatch = "" if found is None else f"**result {found.result}{list(found.index)}: {found.value}**"
        received = bytes_received(compiled.compiled_text(), _MESH.size)
        return Ran(layout, received, _memory(compiled), mismatch)

    chosen = module.clone()
    plan = sdy.auto(chosen, mesh=_MESH, hardware=_HARDWARE)
    return Run(name, ran(plan.found_from, chosen), ran(*_by_expert(module)))


def _inputs(whole: CompiledProgram) -> list[NumpyArray]:
    """Random arguments; an optimizer's means of squares are not negative."""
    inputs = random_inputs(whole.inputs, seed=0)
    return [
        np.abs(array) if f"({_SQUARES}" in port.name else array
        for port, array in zip(whole.inputs, inputs, strict=True)
    ]


def _by_expert(module: ModuleOp) -> tuple[str, ModuleOp]:
    """The best of the experts' layouts, as estimated, and `module` with it."""
    local = module.clone()
    insert(MeshOp(_NAME, _MESH), InsertPoint.at_start(local.body.block))
    program = fold(prepared(local))
    choices = find_choices(program, _NAME, _MESH)
    of_results = find_choices_of_results(program, _NAME, _MESH)
    estimator = Estimator(program, _NAME, _HARDWARE)
    search = Search(estimator, choices, of_results, math.inf, time.monotonic() + 60, lambda _: None)
    known = [search.candidate(name, layout) for name, layout in expert_layouts(choices, _MESH, search).items()]
    best = min(known, key=search.rank)
    layout_of(choices, of_results, search, best).write(local)
    return best.name, local


def _arrays(results: Sequence[jax.Array]) -> list[np.ndarray]:
    return [np.asarray(result) for result in results]


def _memory(compiled: CompiledProgram) -> int:
    peak = compiled.peak_bytes()
    assert peak is not None
    return peak
