"""Check many random programs: `python -m whole_programs.campaign` from tests/support.

Prints each failing program with its text and its seed, and the number of programs of each verdict.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing import get_context
from multiprocessing.connection import Connection
from random import Random

import virtual_devices
from small_scope.choices import Choices

virtual_devices.set_up()

from whole_programs.check import FAILURES, Verdict, check  # noqa: E402
from whole_programs.program import WholeProgram, whole_program  # noqa: E402
from whole_programs.shrink import replay, shrunk  # noqa: E402

BATCH = 100
"""Programs per process: compiled programs are never freed."""

Run = tuple[int, Verdict, str]
"""The seed of a program, its verdict, and its text."""


def program_of(seed: int) -> tuple[WholeProgram, list[int]]:
    """Return the program of a seed, and its choices."""
    random, numbers = Random(seed), list[int]()

    def choose(count: int) -> int:
        numbers.append(random.randrange(count))
        return numbers[-1]

    return whole_program(Choices(choose), seed), numbers


def run(seed: int, by_xla: bool, shrinks: bool) -> Run:
    """Check the program of `seed`; return the verdict and the text, minimized if it fails and `shrinks` is true."""
    program, numbers = program_of(seed)
    verdict = check(program, by_xla)
    if shrinks and verdict.kind in FAILURES:
        numbers = shrunk(numbers, lambda each: _same(check(whole_program(replay(each), seed), by_xla), verdict))
        program = whole_program(replay(numbers), seed)
        verdict = check(program, by_xla)
    return seed, verdict, program.text


def _same(one: Verdict, other: Verdict) -> bool:
    return one.kind == other.kind and (one.kind == "wrong" or one.why[:40] == other.why[:40])


def runs(seeds: Sequence[int], by_xla: bool, shrinks: bool) -> list[Run]:
    """Check the programs of `seeds` in a separate process, which is restarted after a crash."""
    found: list[Run] = []
    while len(found) < len(seeds):
        ours, theirs = get_context("spawn").Pipe()
        process = get_context("spawn").Process(target=_send, args=(seeds[len(found) :], by_xla, shrinks, theirs))
        process.start()
        theirs.close()
        try:
            while len(found) < len(seeds):
                found.append(ours.recv())
        except EOFError:
            seed = seeds[len(found)]
            found.append((seed, Verdict("crashed", "the process died"), program_of(seed)[0].text))
        process.join()
    return found


def _send(seeds: Sequence[int], by_xla: bool, shrinks: bool, connection: Connection) -> None:
    for seed in seeds:
        connection.send(run(seed, by_xla, shrinks))


def main() -> int:
    """Run the campaign of the command line; the exit status is 1 if a program fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--by", choices=("interpreter", "xla"), default="xla", help="what runs the programs")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--shrink", action="store_true", help="show the least program that fails in the same way")
    options = parser.parse_args()
    counts, begin = Counter[str](), time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    batches = [seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH)]
    with ThreadPoolExecutor(options.workers) as pool:
        futures = [pool.submit(runs, batch, options.by == "xla", options.shrink) for batch in batches]
        for future in as_completed(futures):
            for seed, verdict, text in future.result():
                counts[verdict.kind] += 1
                if verdict.kind in FAILURES:
                    print(f"--- seed {seed}: {verdict.kind}: {verdict.why}\n{text}\n", flush=True)
            print(f"{_row(counts)}, after {time.monotonic() - begin:.0f} s", flush=True)
    return int(counts["right"] != options.count)


def _row(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in ("right", *FAILURES))


if __name__ == "__main__":
    sys.exit(main())
