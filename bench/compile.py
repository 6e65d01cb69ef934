"""Compile time of a program, by stage: with sdy, and with jax.jit alone.

    python bench/compile.py [LAYERS ...]          2 12 48 by default

The program is the training step of examples/transformer.py with that many layers, on 8 virtual CPU devices. sdy starts
from its text, `jax.jit(step).lower(...).compile()` from the Python function. The stage XLA compiles the local program
for sdy; for jax it also propagates and partitions. The two take turns; each time is the minimum of several, in
processor seconds of all threads.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from measure import Stages, least_seconds_of_stages

sys.path.append(str(Path(__file__).parent.parent / "examples"))

import transformer
from sdy.passes.driver import partition, propagate
from sdy.passes.jax.program.sharded_program import ShardedProgram
from sdy.text import parse

OURS, JAX = "sdy", "jax"
PARSE, PROPAGATE, PARTITION, LOWER, XLA = "parse", "propagate", "partition", "lower", "XLA"
BEFORE, ALL = "before XLA", "all"
STAGES = (PARSE, PROPAGATE, PARTITION, LOWER, BEFORE, XLA, ALL)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the time to compile a program with that of jax.jit.")
    parser.add_argument("layers", nargs="*", type=int, default=[2, 12, 48])
    table = Table(title="processor seconds; the ratio is that of all, sdy / jax")
    for heading in ("layers", "", *STAGES, "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    for layers in parser.parse_args().layers:
        compare(layers, table)
    Console().print(table)


def compare(layers: int, table: Table) -> None:
    """Add a row for sdy and a row for jax to `table`."""
    text = transformer.lower(layers).as_text()
    least = least_seconds_of_stages(
        {OURS: lambda timing: by_sdy(text, timing), JAX: lambda timing: by_jax(layers, timing)}
    )
    totals = {name: sum(stages.values()) for name, stages in least.items()}
    for name, stages in least.items():
        shown = {**stages, BEFORE: totals[name] - stages[XLA], ALL: totals[name]}
        figures = [f"{shown[stage]:.2f}" if stage in shown else "" for stage in STAGES]
        first = f"{layers}" if name == OURS else ""
        ratio = f"{totals[OURS] / totals[JAX]:.2f}" if name == OURS else ""
        table.add_row(first, name, *figures, ratio, end_section=name == JAX)


def by_sdy(text: str, timing: Stages) -> object:
    with timing.stage(PARSE):
        module = parse(text)
    with timing.stage(PROPAGATE):
        propagate(module)
    with timing.stage(PARTITION):
        partition(module)
    with timing.stage(LOWER):
        lowered = ShardedProgram.of(module).lower()
    with timing.stage(XLA):
        return lowered.compile()


def by_jax(layers: int, timing: Stages) -> object:
    with timing.stage(LOWER):
        lowered = transformer.lower(layers)
    with timing.stage(XLA):
        return lowered.compile()


if __name__ == "__main__":
    main()
