"""Check many cases, counted by operation: `python -m small_scope.campaign` from tests/support.

Checks all cases of each operation on each mesh if there are at most `--count`, else a random sample of that size.
Prints the failing cases with their text, and a table at the end.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice

from small_scope.annotated import ANNOTATED
from small_scope.check import Checker, Verdict
from small_scope.choices import Choices, every, some
from small_scope.contractions import CONTRACTIONS
from small_scope.control_flow import CONTROL_FLOW
from small_scope.elementwise import ELEMENTWISE
from small_scope.indexing import INDEXING
from small_scope.linear_algebra import LINEAR_ALGEBRA
from small_scope.manual import MANUAL
from small_scope.program import Program
from small_scope.reductions import REDUCTIONS
from small_scope.reshards import RESHARDS
from small_scope.shaping import SHAPING
from small_scope.shardings import MESHES
from small_scope.windows import WINDOWS

FAMILIES = [
    *RESHARDS,
    *ELEMENTWISE,
    *SHAPING,
    *INDEXING,
    *REDUCTIONS,
    *CONTRACTIONS,
    *WINDOWS,
    *LINEAR_ALGEBRA,
    *CONTROL_FLOW,
    *ANNOTATED,
    *MANUAL,
]
OPERATIONS = {make.__name__.rstrip("_"): make for make in FAMILIES}


@dataclass
class Tally:
    """Counts of the verdicts on the cases of one operation on one mesh."""

    operation: str
    mesh: str
    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[tuple[Verdict, str]] = field(default_factory=list[tuple[Verdict, str]])
    seconds: float = 0.0


def run(operation: str, mesh: str, count: int, seed: int, shown: int) -> Tally:
    """Check at most `count` cases, keeping the first `shown` failures of each kind."""
    tally, check, start = Tally(operation, mesh), Checker(), time.monotonic()

    def make(choices: Choices) -> Program:
        return OPERATIONS[operation](Program(choices, MESHES[mesh]))

    there_are_more = next(islice(every(make), count, None), None) is not None
    for case in islice(some(make, f"{seed} {operation} {mesh}") if there_are_more else every(make), count):
        verdict = check(case)
        tally.counts[verdict.kind] += 1
        if verdict.kind not in ("right", "seen") and tally.counts[verdict.kind] <= shown:
            tally.problems.append((verdict, case.text))
    tally.seconds = time.monotonic() - start
    return tally


def main() -> int:
    """Run the campaign of the command line; the exit status is 1 if a case fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operations", nargs="*", help=f"of {', '.join(OPERATIONS)}")
    parser.add_argument("--mesh", action="append", choices=MESHES, help="of these meshes only")
    parser.add_argument("--count", type=int, default=100, help="cases of each operation on each mesh")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--shown", type=int, default=1, help="failures to show of each kind, operation and mesh")
    options = parser.parse_args()
    for name in options.operations:
        if name not in OPERATIONS:
            parser.error(f"no such operation: {name}")
    tallies: list[Tally] = []
    # A new process for each operation and mesh frees the interned attributes.
    with ProcessPoolExecutor(options.workers, max_tasks_per_child=1) as pool:
        futures = [
            pool.submit(run, name, mesh, options.count, options.seed, options.shown)
            for name in options.operations or OPERATIONS
            for mesh in options.mesh or MESHES
        ]
        for future in as_completed(futures):
            tally = future.result()
            tallies.append(tally)
            print(f"{tally.operation} on {tally.mesh}: {_row(tally.counts)}", file=sys.stderr, flush=True)
            for verdict, text in tally.problems:
                print(f"--- {tally.operation} on {tally.mesh}: {verdict.kind}: {verdict.why}\n{text}\n", flush=True)
    total = Counter[str]()
    for name in OPERATIONS:
        counts = sum((tally.counts for tally in tallies if tally.operation == name), Counter[str]())
        if counts:
            seconds = sum(tally.seconds for tally in tallies if tally.operation == name)
            print(f"{name:24} {_row(counts)}  {seconds:8.0f} s")
            total += counts
    print(f"{'all':24} {_row(total)}  {sum(tally.seconds for tally in tallies):8.0f} s")
    return int(any(total[kind] for kind in ("wrong", "invalid", "refused", "crashed")))


def _row(counts: Counter[str]) -> str:
    kinds = ("right", "wrong", "invalid", "refused", "crashed", "seen")
    return "  ".join(f"{counts[kind]:8} {kind}" for kind in kinds)


if __name__ == "__main__":
    sys.exit(main())
