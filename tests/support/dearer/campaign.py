"""Compare many small programs under `sdy.jit` and `jax.jit`: `python -m dearer.campaign` from tests/support.

Draws `--count` programs of each family on each mesh, compiles each with `sdy.jit` and `jax.jit`, and prints those that
receive more than 1.05 times the bytes of `jax.jit`, compute different numbers, or are refused. The table at the end
lists for each family the number of programs, the geometric mean of the ratios of bytes received, and the largest
ratio. The exit status is 1 if a program has a problem.
"""

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context

import virtual_devices

virtual_devices.set_up()
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # silence XLA's warnings about replicating reshards

from dearer.case import MESHES, Case, Draft, mesh_of  # noqa: E402
from dearer.indexed import INDEXED  # noqa: E402
from dearer.measure import Measured, measure  # noqa: E402
from dearer.moves import MOVES  # noqa: E402
from dearer.ordered import ORDERED  # noqa: E402
from dearer.resizes import RESIZES  # noqa: E402
from dearer.windows import WINDOWS  # noqa: E402
from small_scope.choices import Choices, some  # noqa: E402

Family = Callable[[Draft], Case]

FAMILIES: dict[str, Family] = {family.__name__: family for family in [*INDEXED, *MOVES, *ORDERED, *RESIZES, *WINDOWS]}

_PROBLEMS = ("dearer", "wrong", "refused")


@dataclass
class Tally:
    """Results of the programs of one family on one mesh."""

    family: str
    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[tuple[str, Measured]] = field(default_factory=list[tuple[str, Measured]])
    log_ratios: list[float] = field(default_factory=list[float])
    seconds: float = 0.0


def draw(family: str, mesh: str, seed: int, count: int) -> list[Case]:
    """Draw `count` programs of a family on a mesh."""

    def make(choices: Choices) -> Case:
        return FAMILIES[family](Draft(choices, mesh_of(MESHES[mesh])))

    return [*islice(some(make, f"{seed} {family} {mesh}"), count)]


def run(family: str, mesh: str, seed: int, count: int) -> Tally:
    """Measure `count` programs of a family on a mesh."""
    tally, start, process = Tally(family), time.monotonic(), _Process()
    for index in range(count):
        text, measured = process.measure(family, mesh, seed, index)
        tally.counts[measured.problem or "right"] += 1
        if measured.problem != "refused":
            tally.log_ratios.append(math.log(measured.ratio))
        if measured.problem:
            tally.problems.append((text, measured))
    process.end()
    tally.seconds = time.monotonic() - start
    return tally


class _Process:
    """A process that measures programs, and is replaced where XLA's partitioner ends it."""

    def __init__(self) -> None:
        self._pool = self._started()

    def measure(self, family: str, mesh: str, seed: int, index: int) -> tuple[str, Measured]:
        """Return the text of a program and its measurement, without `jax.jit` if that ends the process."""
        try:
            return self._pool.submit(_measure, family, mesh, seed, index).result()
        except BrokenProcessPool:
            self._pool = self._started()
            return self._pool.submit(_measure, family, mesh, seed, index, with_jax=False).result()

    def end(self) -> None:
        """End the process."""
        self._pool.shutdown()

    @staticmethod
    def _started() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _measure(family: str, mesh: str, seed: int, index: int, with_jax: bool = True) -> tuple[str, Measured]:
    case = draw(family, mesh, seed, index + 1)[-1]
    return case.text, measure(case, with_jax)


def main() -> int:
    """Run the campaign of the command line; the exit status is 1 if a program has a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--mesh", action="append", choices=MESHES, help="only these meshes")
    parser.add_argument("--count", type=int, default=30, help="programs of each family on each mesh")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--shown", type=int, default=3, help="problems to print of each family and mesh, the worst first"
    )
    options = parser.parse_args()
    for name in options.families:
        if name not in FAMILIES:
            parser.error(f"no such family: {name}")
    tallies: list[Tally] = []
    # Each family and mesh has a process of its own, which frees the compiled programs.
    with ThreadPoolExecutor(options.workers) as pool:
        futures = [
            pool.submit(run, name, mesh, options.seed, options.count)
            for name in options.families or FAMILIES
            for mesh in options.mesh or MESHES
        ]
        for future in as_completed(futures):
            tally = future.result()
            tallies.append(tally)
            worst = sorted(tally.problems, key=lambda problem: -problem[1].ratio)
            for text, measured in worst[: options.shown]:
                print(f"{measured.problem}: {text}: {measured.why[:300]}", flush=True)
    for name in FAMILIES:
        if family := [tally for tally in tallies if tally.family == name]:
            print(_row(name, family))
    print(_row("all", tallies))
    return int(any(tally.problems for tally in tallies))


def _row(name: str, tallies: list[Tally]) -> str:
    counts = sum((tally.counts for tally in tallies), Counter[str]())
    logs = [log for tally in tallies for log in tally.log_ratios] or [0.0]
    problems = "  ".join(f"{counts[kind]:5} {kind}" for kind in _PROBLEMS)
    means = f"mean {math.exp(sum(logs) / len(logs)):.3f}  most {math.exp(max(logs)):6.2f}"
    return f"{name:16} {counts.total():6} programs  {problems}  {means}  {sum(t.seconds for t in tallies):6.0f} s"


if __name__ == "__main__":
    sys.exit(main())
