"""Times of collectives predicted from measured hardware, beside the times of programs that run them.

    python bench/collective_times.py [--bytes N] [--turns N]

`sdy-auto --measure` measures eight virtual CPU devices, or those of the machine if it has other ones. Then a program is
timed for each kind of collective and each of eight other sizes than the measured ones, up to N bytes (64M by default).
The table has the predicted time, with the launch of a program, over the measured one: the median of turns, as other
work on the machine changes both from one minute to the next.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=8 {os.environ.get('XLA_FLAGS', '')}"

import jax
from rich.console import Console
from rich.table import Table

import sdy
from sdy.formatting import format_bytes, parse_bytes
from sdy.passes.jax.measured_collectives import collective_seconds
from sdy.passes.jax.measured_hardware import measured_hardware
from sdy.passes.spmd.costs.hardware import COLLECTIVES, hardware_of
from sdy.passes.spmd.costs.network import Message, Network

_CLOSE = 1.3
"""A predicted time is counted if it is within this factor of the measured one."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Predicted and measured times of collectives.")
    parser.add_argument("--bytes", default="64M", help="the bytes of the largest collective")
    parser.add_argument("--turns", type=int, default=3, help="the number of turns")
    args = parser.parse_args()
    largest = parse_bytes(args.bytes)
    sizes = [largest * 3 // 4 >> (2 * place) for place in reversed(range(8))]
    turns = [_turn(largest, sizes) for _ in range(args.turns)]
    table = Table("", *(format_bytes(size) for size in sizes))
    ratios: list[float] = []
    for kind in COLLECTIVES:
        row = [median(times) for times in zip(*(turn[kind] for turn in turns), strict=True)]
        table.add_row(kind, *(f"{ratio:.2f}" for ratio in row))
        ratios += row
    close = sum(1 / _CLOSE <= ratio <= _CLOSE for ratio in ratios)
    Console(width=120).print(table, f"{close} of {len(ratios)} within {_CLOSE}")


def _turn(largest: int, sizes: Sequence[int]) -> dict[str, list[float]]:
    """Measure the hardware, then the programs, and return the predicted over the measured times of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "measured.toml")
        file.write_text(measured_hardware(most_bytes=largest))
        hardware = hardware_of(str(file))
    count = jax.device_count()
    network = Network(sdy.Mesh.of({"devices": count}), hardware)

    def predicted(kind: str, received: float) -> float:
        return hardware.launch + network.seconds(Message(kind, ("devices",), 0, received, 1))

    return {
        kind: [predicted(kind, received) / seconds for received, seconds in collective_seconds(kind, count, sizes)]
        for kind in COLLECTIVES
    }


if __name__ == "__main__":
    main()
