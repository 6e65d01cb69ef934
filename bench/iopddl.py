"""A solver for strategy selection on the instances of the ASPLOS 2025 contest, within its time limits.

    python bench/iopddl.py CHECKOUT [--only LETTERS] [--share SHARE]

CHECKOUT is a checkout of https://github.com/google/iopddl. The clock starts after an instance is decompressed: the
file is read and solved within SHARE of the contest's time limit. The cost of the assignment is then recomputed from the
JSON, independently of the solver. The table compares costs with those of the contest's best team and of XLA, where
published; the bound is the solver's lower bound.

The solver's kernels are compiled before the clock starts.
"""

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from iopddl_solver import Problem, solve

SECONDS = {
    **dict.fromkeys("ABCD", 60),
    **dict.fromkeys("EFGHIJ", 120),
    **dict.fromkeys("KLMNO", 180),
    **dict.fromkeys("PQRST", 240),
    **dict.fromkeys("UVWXY", 300),
}
"""The time limits of the contest."""
BEST_TEAM = {
    "A": 6_548_641_531,
    "B": 532_843,
    "C": 84.10e9,
    "D": 313.6e9,
    "G": 217_039,
    "K": 2.274e9,
    "L": 1.971e9,
    "M": 49.93e9,
    "N": 202.7e9,
    "P": 662.2e9,
    "Q": 526.8e9,
    "R": 371.9e9,
    "S": 1.535e9,
    "T": 682.9e9,
    "U": 2.569e9,
    "V": 1_632_051,
}
XLA = {
    "A": 13.21e9,
    "B": 990_205,
    "C": 4.196e12,
    "G": 1_264_777,
    "P": 651.8e9,
    "Q": 1.996e12,
}
"""The costs of XLA's own solver, for the instances where it finds a solution within the memory limit."""
FORBIDDEN = 10**18
"""The cost of infeasible strategies and pairs in the instances."""
RESERVE = 1.0
"""The seconds reserved for the work after the search."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Solve the instances of the ASPLOS 2025 contest.")
    parser.add_argument("checkout", type=Path, help="a checkout of github.com/google/iopddl")
    parser.add_argument("--only", default="", metavar="LETTERS", help="the instances with these letters")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the time limits to use (default: 1)")
    arguments = parser.parse_args()
    packed = {path.name[-len("A.json.gz")]: path for path in sorted(arguments.checkout.glob("benchmarks/*.json.gz"))}
    if not packed:
        parser.error(f"{arguments.checkout} has no benchmarks/*.json.gz; fetch https://github.com/google/iopddl")
    prepare()
    table = Table(title=f"within {arguments.share:g} of the time limits", title_justify="left")
    for heading in ("", "nodes", "cost", "to best team", "to XLA", "bound", "to cost", "seconds", "of", "valid"):
        table.add_column(heading, justify="right")
    are_valid = True
    for letter, path in packed.items():
        if arguments.only and letter not in arguments.only:
            continue
        row, is_valid = run(letter, path, arguments.share)
        are_valid &= is_valid
        table.add_row(*row)
        print(*row, file=sys.stderr)
    Console(width=120).print(table)
    return 0 if are_valid else 1


def prepare() -> None:
    """Solve a problem that uses all kernels of the solver, to compile them."""
    ring = [(i, (i + step) % 1100) for i in range(1100) for step in (1, 5, 11)]
    nodes = [np.arange(3.0)] * 1100
    memory = [np.array([2, 1, 0])] * 1100
    solve(Problem(nodes, memory, ring, [np.eye(3)] * len(ring), [(0, 1)] * 1100, limit=1500), 60, rounds=0)


def run(letter: str, packed: Path, share: float) -> tuple[list[str], bool]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        start = perf_counter()
        problem = read(path)
        limit = SECONDS[letter] * share
        solution = solve(problem, limit - (perf_counter() - start) - RESERVE)
        seconds = perf_counter() - start
        nodes = len(problem.costs)
        del problem
        if solution.assignment is None:
            return [letter, str(nodes), "none", "", "", "", "", f"{seconds:.0f}", f"{limit:.0f}", "no"], False
        cost = checked_cost(json.loads(path.read_bytes())["problem"], solution.assignment.tolist())
    is_valid = cost is not None and cost == solution.cost and seconds <= limit
    return [
        letter,
        str(nodes),
        f"{cost:,}" if cost is not None else "too much memory",
        f"{solution.cost / BEST_TEAM[letter]:.4f}" if letter in BEST_TEAM else "",
        f"{solution.cost / XLA[letter]:.4f}" if letter in XLA else "",
        f"{solution.bound:,.0f}",
        f"{solution.bound / solution.cost:.4f}",
        f"{seconds:.0f}",
        f"{limit:.0f}",
        "yes" if is_valid else "no",
    ], is_valid


def read(path: Path) -> Problem:
    """Read the problem of an instance."""
    problem = json.loads(path.read_bytes())["problem"]
    costs = [_with_forbidden(each) for each in _arrays(problem["nodes"]["costs"])]
    edges = [(int(first), int(second)) for first, second in problem["edges"]["nodes"]]
    matrices = [
        _with_forbidden(each).reshape(costs[first].size, costs[second].size)
        for each, (first, second) in zip(_arrays(problem["edges"]["costs"]), edges, strict=True)
    ]
    return Problem(
        costs=costs,
        memory=_arrays(problem["nodes"]["usages"]),
        edges=edges,
        matrices=matrices,
        lifetimes=[(int(start), int(end)) for start, end in problem["nodes"]["intervals"]],
        limit=problem.get("usage_limit"),
    )


def _arrays(lists: Sequence[Sequence[int]]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    sizes = [len(each) for each in lists]
    values = np.fromiter(chain.from_iterable(lists), np.int64, sum(sizes))
    return np.split(values, np.cumsum(sizes)[:-1])


def _with_forbidden(costs: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.where(costs >= FORBIDDEN, np.inf, costs)


def checked_cost(problem: Any, assignment: Sequence[int]) -> int | None:
    """Compute the integer cost of an assignment by the contest's rules; None if it exceeds the memory limit."""
    nodes, edges = problem["nodes"], problem["edges"]
    cost = sum(costs[chosen] for costs, chosen in zip(nodes["costs"], assignment, strict=True))
    for (first, second), costs in zip(edges["nodes"], edges["costs"], strict=True):
        cost += costs[assignment[first] * len(nodes["costs"][second]) + assignment[second]]
    changes: defaultdict[int, int] = defaultdict(int)
    for (start, end), usages, chosen in zip(nodes["intervals"], nodes["usages"], assignment, strict=True):
        if start < end:
            changes[start] += usages[chosen]
            changes[end] -= usages[chosen]
    usage = 0
    for time in sorted(changes):
        usage += changes[time]
        if "usage_limit" in problem and usage > problem["usage_limit"]:
            return None
    return cost


if __name__ == "__main__":
    raise SystemExit(main())
