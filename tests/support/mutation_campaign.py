"""Fuzzing of sdy-opt with mutated texts: each run ends with a program or a diagnostic, within its time and memory.

    python tests/support/mutation_campaign.py --count 100000 --seed 0
    python tests/support/mutation_campaign.py --seed 0 --show 1234          # print one of the texts and its outcome

Each text goes through the parser, the verifiers, both pipelines or a single pass, and the printer, in a process with
2 GB and 10 seconds. The outcomes are counted; bad ones are listed by the source line of the failure.
"""

import argparse
import multiprocessing
import random
import resource
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

from mutated_texts import ROOT, mutated_text
from sdy.diagnostics import capture
from sdy.passes.catalog import PASSES
from sdy.passes.driver import Source, Timing
from sdy.tools.sdy_opt import attempt, parse_arguments

SECONDS = 10
"""Processor time of one text."""
BYTES = 2 << 30
_PATIENCE = 12 * SECONDS
"""Wall-clock seconds without an answer after which a process counts as hanging."""

PIPELINES = ("-sdy-propagation-pipeline", "-sdy-partition-pipeline")
_SINGLE_PASSES = [name for name in PASSES if name != "sdy-save-module"]
_ALONE = 0.2
"""Fraction of the texts that go through a single pass instead of the pipelines."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a text: "read", "refused", or the kind of failure, its source line, and details."""

    kind: str
    place: str = ""
    details: str = ""
    spoils: bool = False
    """True if the process must not be reused."""

    @property
    def is_good(self) -> bool:
        """True for "read" and "refused"."""
        return self.kind in ("read", "refused")


class _TooSlowError(BaseException):
    """The time limit is exceeded."""


def flags_for(seed: int, number: int) -> tuple[str, ...]:
    """Return the sdy-opt flags for a text of `mutated_text`: both pipelines, or a single pass."""
    choices = random.Random(f"{seed} {number} flags")
    if choices.random() >= _ALONE:
        return PIPELINES
    return f"-{choices.choice(_SINGLE_PASSES)}", choices.choice(("--mlir-print-debuginfo", "--mlir-print-op-generic"))


def outcome(text: str, flags: Sequence[str]) -> Outcome:
    """Return the outcome of sdy-opt on a text, in this process."""
    try:
        with capture():
            printed = attempt(Source(text, "mutated.mlir"), parse_arguments(flags), Timing())
    except _TooSlowError as problem:
        return Outcome(f"takes over {SECONDS} seconds", *_told(problem), spoils=True)
    except MemoryError as problem:
        return Outcome(f"takes over {BYTES >> 30} GB", *_told(problem), spoils=True)
    except Exception as problem:
        return Outcome(type(problem).__name__, *_told(problem))
    return Outcome("refused" if printed is None else "read")


def _told(problem: BaseException) -> tuple[str, str]:
    """Return the last frame in the source of sdy, and the end of the traceback."""
    frames = traceback.extract_tb(problem.__traceback__)
    if isinstance(problem, _TooSlowError) and threading.active_count() > 1:
        # Slow texts run in a thread with a larger stack.
        stacks = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        frames = max((traceback.extract_stack(frame) for frame in stacks.values()), key=len)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT) and "tests" not in frame.filename]
    place = f"{Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno} in {ours[-1].name}" if ours else ""
    return place, "".join(traceback.format_list(frames[-12:])) + f"{type(problem).__name__}: {str(problem)[:500]}"


def _too_slow(signal_number: int, frame: FrameType | None) -> None:
    raise _TooSlowError


def _limit_memory() -> None:
    present = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (present + BYTES, most))


def _work(connection: Connection) -> None:
    """Answer each text with its outcome; runs in a process of its own."""
    outcome("module {}", PIPELINES)  # load modules before the first text is timed
    _limit_memory()
    signal.signal(signal.SIGPROF, _too_slow)
    while True:
        text, flags = connection.recv()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        found = outcome(text, flags)
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(found)


class Worker:
    """A process that tries texts one after the other, replaced after an outcome that spoils it."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def outcome(self, text: str, flags: Sequence[str]) -> Outcome:
        """Return the outcome of a text."""
        self._connection.send((text, flags))
        found = Outcome("hangs", spoils=True)
        if self._connection.poll(_PATIENCE):
            with suppress(EOFError, ConnectionError):
                found = self._connection.recv()
        if not self._process.is_alive():
            found = Outcome(f"kills the process: {self._process.exitcode}", spoils=True)
        if found.spoils:
            self.stop()
            self._start()
        return found


@dataclass
class Campaign:
    """Counts of the outcomes of the texts of a seed."""

    seed: int
    one_in: int = 1
    """The corpus is every `one_in`-th of its programs."""
    counts: Counter[str] = field(default_factory=Counter[str])
    first: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The number of the first text of each failure and source line."""
    details: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    slowest: tuple[float, int] = (0.0, 0)
    """Seconds and number of the slowest text."""

    def run(self, numbers: Sequence[int]) -> None:
        """Try the texts with these numbers."""
        worker = Worker()
        for number in numbers:
            text = mutated_text(self.seed, number, self.one_in)
            start = time.perf_counter()
            found = worker.outcome(text, flags_for(self.seed, number))
            self.slowest = max(self.slowest, (time.perf_counter() - start, number))
            self.counts[found.kind] += 1
            if not found.is_good and (found.kind, found.place) not in self.first:
                self.first[found.kind, found.place] = number
                self.details[found.kind, found.place] = found.details
                print(f"{number}: {found.kind} at {found.place}\n{found.details}\n", flush=True)
            if number % 1000 == 999:
                print(f"{number + 1}: {self}", file=sys.stderr, flush=True)
        worker.stop()

    def __str__(self) -> str:
        seconds, number = self.slowest
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.most_common())
        return f"{counts}; {len(self.first)} places; the slowest, {number}, took {seconds:.1f} s"


def main() -> int:
    """Run the command line; the exit status is 1 if an outcome is bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many texts to try")
    parser.add_argument("--seed", type=int, default=0, help="which texts they are")
    parser.add_argument("--start", type=int, default=0, help="the number of the first")
    parser.add_argument("--show", type=int, help="print the text of this number and how it fares, and try no other")
    arguments = parser.parse_args()
    if arguments.show is not None:
        flags = flags_for(arguments.seed, arguments.show)
        text = mutated_text(arguments.seed, arguments.show)
        print(text)
        print(*flags, file=sys.stderr)
        worker = Worker()
        print(worker.outcome(text, flags), file=sys.stderr)
        worker.stop()
        return 0
    campaign = Campaign(arguments.seed)
    campaign.run(range(arguments.start, arguments.start + arguments.count))
    print(campaign)
    return 1 if campaign.first else 0


if __name__ == "__main__":
    sys.exit(main())
