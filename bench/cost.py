"""Accuracy of predicted costs: bytes received and peak memory, compared with XLA's compiled programs.

    python bench/cost.py [--only TEXT]

For each program of the corpus whose name contains TEXT, on eight virtual CPU devices, the table has the bytes received
by a device in collectives and its peak memory: predicted from the partitioned program, and measured in the program that
XLA compiled. Ratios are predicted / measured.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={_DEVICES} {os.environ.get('XLA_FLAGS', '')}"
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402
from rich.table import Table  # noqa: E402

from corpus import PROGRAMS  # noqa: E402
from partitioned_programs import Program, partitioned  # noqa: E402
from sdy.passes.jax.api.compile import compile  # noqa: E402
from sdy.passes.jax.hlo_received import bytes_received as bytes_really_received  # noqa: E402
from sdy.passes.spmd.costs.communication import bytes_received  # noqa: E402
from sdy.passes.spmd.costs.footprint import peak_bytes  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare predicted costs with those of compiled programs.")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name contains TEXT")
    only = parser.parse_args().only
    chosen = {name: program for name, program in PROGRAMS.items() if only in name}
    table = Table(title="a device, in a step", title_justify="left")
    for heading in ("program", "received", "predicted", "ratio", "memory", "predicted", "ratio"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    received: list[float] = []
    memory: list[float] = []
    for name, program in track(chosen.items(), "compiling", console=Console(stderr=True), transient=True):
        figures = measure(program)
        ratios = [_ratio(*pair) for pair in figures]
        received.append(ratios[0])
        memory.append(ratios[1])
        table.add_row(
            name, *(text for pair, ratio in zip(figures, ratios, strict=True) for text in _cells(pair, ratio))
        )
    Console(width=140).print(table)
    print(f"bytes received: geometric mean of the ratios {_geometric_mean(received):.3f}, {_spread(received)}")
    print(f"memory: geometric mean of the ratios {_geometric_mean(memory):.3f}, {_spread(memory)}")
    return 0


def measure(program: Program) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (measured, predicted) bytes received, and (measured, predicted) memory."""
    module = partitioned(program.module())
    compiled = compile(module)
    real = bytes_really_received(compiled.compiled_text(), _DEVICES)
    return (real, bytes_received(module)), (compiled.peak_bytes() or 0, peak_bytes(module))


def _ratio(real: float, predicted: float) -> float:
    """Return predicted / measured, with at least one byte each."""
    return max(predicted, 1) / max(real, 1)


def _cells(pair: tuple[float, float], ratio: float) -> tuple[str, str, str]:
    return f"{pair[0]:,.0f}", f"{pair[1]:,.0f}", f"{ratio:.2f}"


def _spread(ratios: Sequence[float]) -> str:
    return f"from {min(ratios):.2f} to {max(ratios):.2f}"


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


if __name__ == "__main__":
    sys.exit(main())
