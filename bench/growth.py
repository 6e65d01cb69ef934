"""Scaling of the stages with program size: microseconds per operation, and memory, from 800 to 200,000 operations.

    python bench/growth.py [LAYERS ...]          2 12 48 192 648 by default

The program is the training step of examples/transformer.py with that many layers. A subprocess for each size runs the
stages several times; each time is the minimum, in processor seconds. The last row is the largest time per operation of
each stage, relative to the smallest: 1 means that the stage is linear. Memory is the peak of the process, including
about 40 MB of imports.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

from process_memory import MOST, memory
from sdy.passes.driver import run_passes
from sdy.passes.pipelines import PartitionPipeline, PropagationPipeline
from sdy.text import context, format, verify
from sdy.text.reading.parser import parse_module

STAGES = ("read", "verify", "propagate", "print", "partition")
_TURNS = 5
_PATIENCE = 60.0
"""No new turn begins after this many seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time per operation, by stage, as a program grows.")
    parser.add_argument("layers", nargs="*", type=int, default=[2, 12, 48, 192, 648])
    parser.add_argument("--one", action="store_true", help="measure a program on standard input, and print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(sys.stdin.read())))
        return
    from measure import lowered  # imports jax, which must not count as memory of the subprocess

    table = Table("layers", "operations", *STAGES, "MB", title="processor time, µs per operation")
    found: list[dict[str, float]] = []
    for layers in arguments.layers:
        command = [sys.executable, str(Path(__file__)), "--one"]
        done = subprocess.run(command, input=lowered(layers), capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
        row = found[-1]
        figures = [f"{row[stage]:.1f}" for stage in STAGES]
        table.add_row(f"{layers}", f"{row['operations']:,.0f}", *figures, f"{row['MB']:.0f}")
    spread = [f"{max(row[stage] for row in found) / min(row[stage] for row in found):.2f}" for stage in STAGES]
    table.add_row("", "most / least", *spread, "")
    Console().print(table)


def measured(text: str) -> dict[str, float]:
    """Return the microseconds per operation of each stage, the number of operations, and the peak memory in MB."""
    least = dict.fromkeys(STAGES, float("inf"))
    begin, count = process_time(), 0
    for turn in range(_TURNS):
        if turn and process_time() - begin > _PATIENCE:
            break
        seconds: dict[str, float] = {}
        start = process_time()
        module = parse_module(text, "transformer.mlir", context())
        seconds["read"] = process_time() - start
        count = sum(1 for _ in module.walk())
        start = process_time()
        verify(module)
        seconds["verify"] = process_time() - start
        start = process_time()
        run_passes(module, [PropagationPipeline()])
        seconds["propagate"] = process_time() - start
        start = process_time()
        format(module)
        seconds["print"] = process_time() - start
        start = process_time()
        run_passes(module, [PartitionPipeline()])
        seconds["partition"] = process_time() - start
        least = {stage: min(least[stage], seconds[stage]) for stage in STAGES}
        del module
    per_operation = {stage: each / count * 1e6 for stage, each in least.items()}
    return {**per_operation, "operations": count, "MB": memory(MOST)}


if __name__ == "__main__":
    main()
