"""Bytes received, memory and run time of the corpus, partitioned by sdy and by XLA's own partitioner.

    python bench/partition.py [--only TEXT] [--all]

For each program whose name contains TEXT, `sdy.jit` and `jax.jit` compile one function for the same arguments on eight
virtual CPU devices, both with Shardy's propagation. The table has, of one device in one step:

    received    the bytes received in collectives, once per iteration of loops
    memory      arguments, results and temporary buffers of the compiled program
    time        the minimum of several turns

and the ratios sdy / XLA. Without `--all`, programs with ratios of 1 are omitted. The exit status is 1 if the geometric
mean of the ratios of bytes received is above 1, or one of them is above 1.1 without a reason in REASONS.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

_ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(_ROOT / "tests" / "support"))

from corpus import PROGRAMS  # noqa: E402

REASONS: dict[str, str] = {
    "loops: scan of what is split": "each turn gathers the row it needs, where XLA has all rows on each device at once",
}
"""The reasons why programs receive over 10 % more bytes than with XLA."""

_ELEMENT = 4
"""The minimal bytes in a ratio, which avoids division by zero."""


@dataclass
class Row:
    """The measurements of a program: the reports of each partitioner, and the seconds of a step with both."""

    name: str
    said: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: Sequence[float] = ()

    def ratio(self, what: str) -> float | None:
        """Return the ratio sdy / XLA, or None if XLA fails or its results are wrong."""
        if self.failure:
            return None
        return max(self.said["sdy"][what], _ELEMENT) / max(self.said["XLA"][what], _ELEMENT)

    @property
    def time_ratio(self) -> float | None:
        return self.seconds[0] / self.seconds[1] if self.seconds else None

    @property
    def failure(self) -> str:
        """The failure of XLA's program, or an empty string."""
        theirs = self.said.get("XLA", {"fails": "the process ends"})
        if "fails" in theirs:
            return theirs["fails"]
        return "" if theirs["right"] else "wrong numbers"

    @property
    def remark(self) -> str:
        return f"XLA: {self.failure}" if self.failure else REASONS.get(self.name, "")

    @property
    def is_remarkable(self) -> bool:
        return bool(self.remark) or self.ratio("received") != 1 or self.ratio("memory") != 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare partitioned programs with those of XLA's own partitioner.")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name contains TEXT")
    parser.add_argument("--all", action="store_true", help="also show programs with ratios of 1")
    args = parser.parse_args()
    names = [name for name in PROGRAMS if args.only in name]
    if not names:
        parser.error(f"no program's name contains '{args.only}'")
    rows = list(measured(names))
    show([row for row in rows if args.all or row.is_remarkable])
    received, memory = ([ratio for row in rows if (ratio := row.ratio(what))] for what in ("received", "memory"))
    times = [row.time_ratio for row in rows if row.time_ratio]
    wrong = [row.name for row in rows if not row.said["sdy"]["right"]]
    unexplained = [row.name for row in rows if (row.ratio("received") or 0) > 1.1 and row.name not in REASONS]
    print(f"{len(rows)} programs; XLA fails for {sum(bool(row.failure) for row in rows)}, sdy for {len(wrong)}")
    for what, ratios in {"bytes received": received, "memory": memory}.items():
        if ratios:
            print(f"{what}: geometric mean of the ratios {geometric_mean(ratios):.3f}, largest {max(ratios):.2f}")
    if times:
        print(f"time: median of the ratios {median(times):.3f}")
    for name in unexplained:
        print(f"receives over 10 % more without a known reason: {name}")
    return int(bool(wrong) or bool(unexplained) or (bool(received) and geometric_mean(received) > 1))


def measured(names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the programs `names` in order. If XLA crashes the process, a new one continues."""
    console = Console(stderr=True)
    while names:
        command = [sys.executable, str(_ROOT / "bench" / "partition_runs.py"), *names]
        row = Row(names[0])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                if said["program"] != row.name:
                    yield row
                    row = Row(said["program"])
                    console.print(row.name, style="dim")
                if "seconds" in said:
                    row.seconds = said["seconds"]
                else:
                    row.said[said["partitioner"]] = said
        if not row.said:
            raise RuntimeError(f"{row.name} could not be compiled: {' '.join(command)}")
        yield row
        names = names[names.index(row.name) + 1 :]


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def show(rows: Sequence[Row]) -> None:
    table = Table(title="a device, in a step", title_justify="left")
    for heading in ("program", "received, sdy", "XLA", "sdy / XLA", "memory, sdy / XLA", "time, sdy / XLA", "remark"):
        table.add_column(heading, justify="left" if heading in ("program", "remark") else "right")
    for row in rows:
        received = [
            f"{row.said[each]['received']:,.0f}" if "received" in row.said.get(each, {}) else ""
            for each in ("sdy", "XLA")
        ]
        ratios = (row.ratio("received"), row.ratio("memory"), row.time_ratio)
        table.add_row(row.name, *received, *(f"{ratio:.3f}" if ratio else "" for ratio in ratios), row.remark)
    Console(width=160).print(table)


if __name__ == "__main__":
    sys.exit(main())
