"""Programs of bench/drop_in.py with the passes of passes/communication and without them.

    python bench/communication_programs.py [PART OF A NAME ...]          all programs by default

It requires `pip install '.[libraries]'`. Programs that the passes change are listed: the bytes that a device receives
and its memory, as predicted, and the least time of a step on 8 virtual CPU devices, as with / without. The last line
has the geometric means over all programs, those that do not change included. The exit status is 1 if a device receives
more, or needs more than 1.05 times the memory.
"""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

import jax
import jax.numpy as jnp
from xdsl.dialects.builtin import ModuleOp

import sdy
from drop_in_programs import build, names
from placed import Placed
from sdy.diagnostics import DiagnosticError, capture
from sdy.ir.companions import clone
from sdy.passes.pipelines import PartitionPipeline
from sdy.passes.spmd.costs.communication import received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.text import context

_DEVICES = 8
_TURNS = 9
_SECONDS_A_TURN = 0.05
_MOST_MEMORY = 1.05
_ELEMENT = 4
"""The minimal bytes in a ratio, which avoids division by zero."""


@dataclass(frozen=True)
class Effect:
    """The costs of a program with the passes, relative to those without."""

    received: float = 1.0
    memory: float = 1.0
    seconds: float = 1.0

    def __str__(self) -> str:
        return f"received {self.received:.3f}, memory {self.memory:.3f}, step time {self.seconds:.3f}"


def _effect(program: Placed) -> Effect | None:
    """Return the effect of the passes on a program, or None if they do not change it."""
    with jax.set_mesh(program.mesh), capture():
        module = sdy.from_jax(jax.jit(program.function, keep_unused=True), *program.arguments)
        sdy.propagate(module)
        pair = [_partitioned(module, communication) for communication in (True, False)]
        if str(pair[0]) == str(pair[1]):
            return None
        sizes = [max(sum(each.bytes for each in received(local)), _ELEMENT) for local in pair]
        memory = [peak_bytes(local) for local in pair]
        seconds = _least_seconds(pair, program)
    return Effect(*(with_ / without for with_, without in (sizes, memory, seconds)))


def _partitioned(module: ModuleOp, communication: bool) -> ModuleOp:
    local = clone(module)
    for step in PartitionPipeline().numbered_passes(local):
        if communication or not type(step).__module__.startswith("sdy.passes.communication."):
            step.apply(context(), local)
    return local


def _least_seconds(modules: Sequence[ModuleOp], program: Placed) -> Sequence[float]:
    """Return the least seconds of a call of each of `modules`, which take turns of several calls."""
    steps = [sdy.compile(module, program.mesh) for module in modules]
    arguments = [*map(_data, jax.tree.leaves(program.arguments))]
    jax.block_until_ready([step(*arguments) for step in steps])
    start = perf_counter()
    jax.block_until_ready(steps[0](*arguments))
    calls = max(1, round(_SECONDS_A_TURN / (perf_counter() - start)))
    least = [math.inf] * len(steps)
    for _ in range(_TURNS):
        for index, step in enumerate(steps):
            start = perf_counter()
            for _ in range(calls):
                jax.block_until_ready(step(*arguments))
            least[index] = min(least[index], (perf_counter() - start) / calls)
    return least


def _data(argument: Any) -> Any:
    """Return an argument, or the integers of random keys."""
    is_key = jnp.issubdtype(argument.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(argument) if is_key else argument


def _effects(parts: Sequence[str]) -> Iterator[Effect]:
    for name in names():
        if not parts or any(part in name for part in parts):
            try:
                effect = _effect(build(name)())
            except DiagnosticError as problem:  # a program that calls Python
                print(f"{name}: not compared: {problem}", flush=True)
                continue
            if effect is not None:
                print(f"{name}: {effect}", flush=True)
            yield effect or Effect()
            jax.clear_caches()


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> int:
    jax.config.update("jax_num_cpu_devices", _DEVICES)
    effects = [*_effects(sys.argv[1:])]
    means = Effect(*(_mean([getattr(each, name) for each in effects]) for name in ("received", "memory", "seconds")))
    print(f"{len(effects)} programs: {means}")
    return any(each.received > 1 or each.memory > _MOST_MEMORY for each in effects)


if __name__ == "__main__":
    sys.exit(main())
