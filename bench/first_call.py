"""The first call of a function, from Python to its results, under `sdy.jit` and under `jax.jit`, and the second.

    python bench/first_call.py [PART OF A NAME ...] [--turns N]          all of the tests' corpus by default, 7 turns

A program is a function with arguments that are split over 8 virtual CPU devices, as in bench/drop_in.py; nothing else
is said. A first call traces it, lowers it, partitions it, compiles it and runs it: processor seconds, of all threads. A
second call only runs it: seconds, of several such calls the least. The two take turns, after which nothing of a turn is
remembered by jax; each figure is the median of several turns.
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

from drop_in import BEYOND_JAX  # noqa: E402
from placed import Placed, of_corpus  # noqa: E402

import sdy  # noqa: E402
from corpus import PROGRAMS  # noqa: E402
from sdy.diagnostics import capture  # noqa: E402

_TURNS = 7
_SECOND_CALLS = 10


class Seconds(NamedTuple):
    """What a first call takes, and one of those after it."""

    first: float
    second: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the first call of sdy.jit with that of jax.jit.")
    parser.add_argument("parts", nargs="*", default=[""], help="measure the programs that have one of these")
    parser.add_argument("--turns", type=int, default=_TURNS)
    options = parser.parse_args()
    comparable = (name for name in PROGRAMS if f"corpus, {name}" not in BEYOND_JAX)
    chosen = [name for name in comparable if any(part in name for part in options.parts)]
    if not chosen:
        parser.error(f"no program of the corpus has one of these in its name: {', '.join(options.parts)}")
    print("| program | first call: sdy.jit | jax.jit | ratio | second call: ratio |")
    print("| --- | --: | --: | --: | --: |")
    ratios: list[Seconds] = []
    for name in chosen:
        ours, theirs = measured(of_corpus(PROGRAMS[name]), (sdy.jit, jax.jit), options.turns)
        ratios.append(Seconds(ours.first / theirs.first, ours.second / theirs.second))
        first, second = ratios[-1]
        print(f"| {name} | {ours.first:.3f} | {theirs.first:.3f} | {first:.2f} | {second:.2f} |", flush=True)
    for what, found in (("first", [each.first for each in ratios]), ("second", [each.second for each in ratios])):
        mean = math.exp(math.fsum(map(math.log, found)) / len(found))
        print(
            f"{what} calls of {len(found)} programs: geometric mean {mean:.3f}, median {median(found):.3f}, "
            f"most {max(found):.2f}, above 1.1: {sum(each > 1.1 for each in found)}"
        )


def measured(program: Placed, jits: Sequence[Callable[..., Any]], turns: int) -> list[Seconds]:
    """What each of `jits` takes."""
    found: list[list[Seconds]] = [[] for _ in jits]
    with jax.set_mesh(program.mesh), capture():
        # What Python and XLA do once in a process is not a program's.
        for jit in jits:
            calls(jit, program)
        for _ in range(turns):
            for jit, each in zip(jits, found, strict=True):
                each.append(calls(jit, program))
    return [Seconds(*(median(times) for times in zip(*each, strict=True))) for each in found]


def calls(jit: Callable[..., Any], program: Placed) -> Seconds:
    """A first call, and then others."""
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
