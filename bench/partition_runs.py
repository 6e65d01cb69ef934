"""Subprocess of `bench/partition.py`: compiles and runs programs of the corpus with sdy and with XLA's partitioner.

    python bench/partition_runs.py NAME ...

For each named program, it prints a line of JSON after sdy's program has run, and another one after XLA's, since XLA may
crash the process.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

_DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={_DEVICES} {os.environ.get('XLA_FLAGS', '')}"
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import jax  # noqa: E402
import numpy as np  # noqa: E402

import sdy  # noqa: E402
from corpus import PROGRAMS  # noqa: E402
from partitioned_programs import Program, assert_same  # noqa: E402
from sdy.diagnostics import capture  # noqa: E402
from sdy.passes.jax.hlo_received import bytes_received  # noqa: E402
from sdy.passes.jax.program.inputs import random_inputs  # noqa: E402
from sdy.passes.jax.program.sharded_program import ShardedProgram  # noqa: E402

_TURNS = 15
_SECONDS_A_TURN = 0.002


def main() -> None:
    for name in sys.argv[1:]:
        measure(name, PROGRAMS[name])


def measure(name: str, program: Program) -> None:
    mesh = program.jax_mesh()
    described = [argument.on(mesh) for argument in program.arguments]
    unpartitioned = program.module()
    inputs = random_inputs(ShardedProgram.unpartitioned(unpartitioned, None).inputs, seed=0)
    expected = sdy.interpret(unpartitioned, *inputs)
    arrays = [jax.device_put(array, each.sharding) for array, each in zip(inputs, described, strict=True)]

    def compiled(jit: Callable[..., Any]) -> Any:
        with jax.set_mesh(mesh), capture():
            return jit(program.function, keep_unused=True).lower(*described).compile()

    def report(partitioner: str, step: Any) -> None:
        try:
            assert_same(list(map(np.asarray, jax.tree.leaves(step(*arrays)))), expected, program.tolerance)
            right = True
        except AssertionError:
            right = False
        memory = step.memory_analysis()
        peak = sum(getattr(memory, f"{kind}_size_in_bytes") for kind in ("argument", "output", "temp"))
        received = bytes_received(step.as_text(), _DEVICES)
        say(program=name, partitioner=partitioner, received=received, memory=peak, right=right)

    ours = compiled(sdy.jit)
    report("sdy", ours)
    try:
        theirs = compiled(jax.jit)
        report("XLA", theirs)
    except jax.errors.JaxRuntimeError as problem:
        say(program=name, partitioner="XLA", fails=str(problem).splitlines()[0])
        return
    say(program=name, seconds=least_seconds([lambda: ours(*arrays), lambda: theirs(*arrays)]))


def least_seconds(steps: list[Callable[[], Any]]) -> list[float]:
    """Return the minimal seconds per call of each of `steps`, which take turns of several calls."""
    for step in steps:
        jax.block_until_ready(step())
    start = perf_counter()
    jax.block_until_ready(steps[0]())
    calls = max(1, round(_SECONDS_A_TURN / (perf_counter() - start)))
    least = [float("inf")] * len(steps)
    for _ in range(_TURNS):
        for index, step in enumerate(steps):
            start = perf_counter()
            for _ in range(calls):
                jax.block_until_ready(step())
            least[index] = min(least[index], (perf_counter() - start) / calls)
    return least


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
