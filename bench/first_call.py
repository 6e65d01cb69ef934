"""Latency of the first and the second call of a function, with `sdy.jit` and with `jax.jit`.

    python bench/first_call.py [PART OF A NAME ...] [--turns N]          all of the tests' corpus by default, 7 turns

A program is a function with arguments sharded over 8 virtual CPU devices, as in bench/drop_in.py, and no other
annotations. The first call traces, lowers, partitions, compiles and runs it: processor seconds of all threads. The
second call only runs it: the minimal seconds of several such calls. The two take turns, and jax's caches are cleared
before each; each figure is the median over the turns.
"""

import argparse
import gc
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import jax

jax.config.update("jax_num_cpu_devices", 8)
sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

import sdy  # noqa: E402
from corpus import PROGRAMS  # noqa: E402
from drop_in import BEYOND_JAX  # noqa: E402
from placed import Placed, of_corpus  # noqa: E402
from sdy.diagnostics import capture  # noqa: E402

_TURNS = 7
_SECOND_CALLS = 10


class Seconds(NamedTuple):
    """The seconds of the first call, and of a later call."""

    first: float
    second: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the first call of sdy.jit with that of jax.jit.")
    parser.add_argument("parts", nargs="*", default=[""], help="measure only programs whose name contains one of these")
    parser.add_argument("--turns", type=int, default=_TURNS)
    options = parser.parse_args()
    comparable = (name for name in PROGRAMS if f"corpus, {name}" not in BEYOND_JAX)
    selected = [name for name in comparable if any(part in name for part in options.parts)]
    if not selected:
        parser.error(f"no program of the corpus has one of these in its name: {', '.join(options.parts)}")
    print("| program | first call: sdy.jit | jax.jit | ratio | second call: ratio |")
    print("| --- | --: | --: | --: | --: |")
    ratios: list[Seconds] = []
    for name in selected:
        ours, theirs = measured(of_corpus(PROGRAMS[name]), (sdy.jit, jax.jit), options.turns)
        ratios.append(Seconds(ours.first / theirs.first, ours.second / theirs.second))
        first, second = ratios[-1]
        print(f"| {name} | {ours.first:.3f} | {theirs.first:.3f} | {first:.2f} | {second:.2f} |", flush=True)
    for what, values in (("first", [each.first for each in ratios]), ("second", [each.second for each in ratios])):
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        print(
            f"{what} calls of {len(values)} programs: geometric mean {mean:.3f}, median {median(values):.3f}, "
            f"most {max(values):.2f}, above 1.1: {sum(each > 1.1 for each in values)}"
        )


def measured(program: Placed, jits: Sequence[Callable[..., Any]], turns: int) -> list[Seconds]:
    """Return the median seconds of `program` under each of `jits`."""
    times_of_jits: list[list[Seconds]] = [[] for _ in jits]
    with jax.set_mesh(program.mesh), capture():
        # Warm up: one-time work of Python and XLA in a process does not count.
        for jit in jits:
            calls(jit, program)
        for _ in range(turns):
            for jit, each in zip(jits, times_of_jits, strict=True):
                each.append(calls(jit, program))
    return [Seconds(*(median(times) for times in zip(*each, strict=True))) for each in times_of_jits]


def calls(jit: Callable[..., Any], program: Placed) -> Seconds:
    """Time a first call with empty caches, and the calls after it."""
    jax.clear_caches()
    gc.collect()
    start = process_time()
    function = jit(program.function)
    jax.block_until_ready(function(*program.arguments))
    first = process_time() - start
    return Seconds(first, min(_seconds_of_call(function, program) for _ in range(_SECOND_CALLS)))


def _seconds_of_call(function: Callable[..., Any], program: Placed) -> float:
    start = perf_counter()
    jax.block_until_ready(function(*program.arguments))
    return perf_counter() - start


if __name__ == "__main__":
    main()
