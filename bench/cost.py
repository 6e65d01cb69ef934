"""Accuracy of predicted costs: bytes received and peak memory, compared with XLA's compiled programs.

    python bench/cost.py [--libraries] [--only TEXT]

For each program of the corpus whose name contains TEXT, or each one of `bench/drop_in.py` that uses a library, on eight
virtual CPU devices, the table has the bytes received by a device in collectives and its peak memory: predicted from the
partitioned program, and measured in the program that XLA compiled. Ratios are predicted / measured. The last line
counts the programs that need more than 1 MB whose predicted memory is close.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

_DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={_DEVICES} {os.environ.get('XLA_FLAGS', '')}"
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

import jax  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402
from rich.table import Table  # noqa: E402

import sdy  # noqa: E402
from corpus import PROGRAMS  # noqa: E402
from drop_in_programs import build, names  # noqa: E402
from partitioned_programs import Program, partitioned  # noqa: E402
from sdy.diagnostics import capture  # noqa: E402
from sdy.passes.jax.api.compile import compile  # noqa: E402
from sdy.passes.jax.hlo_received import bytes_received as bytes_really_received  # noqa: E402
from sdy.passes.spmd.costs.communication import bytes_received  # noqa: E402
from sdy.passes.spmd.costs.footprint import peak_bytes  # noqa: E402

Figures = tuple[tuple[float, float], tuple[float, float]]
"""(measured, predicted) bytes received, and (measured, predicted) memory."""
Measured = Callable[[], Figures]

_LARGE = 1e6
_CLOSE = ((0.9, 1.1), (0.8, 1.25))


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare predicted costs with those of compiled programs.")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name contains TEXT")
    parser.add_argument("--libraries", action="store_true", help="programs that use libraries")
    options = parser.parse_args()
    programs = with_libraries() if options.libraries else of_corpus()
    chosen = {name: measured for name, measured in programs if options.only in name}
    table = Table(title="a device, in a step", title_justify="left")
    for heading in ("program", "received", "predicted", "ratio", "memory", "predicted", "ratio"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    received: list[float] = []
    memory: list[float] = []
    large: list[float] = []
    for name, measured in track(chosen.items(), "compiling", console=Console(stderr=True), transient=True):
        figures = measured()
        ratios = [_ratio(*pair) for pair in figures]
        received.append(ratios[0])
        memory.append(ratios[1])
        if figures[1][0] > _LARGE:
            large.append(ratios[1])
        table.add_row(
            name, *(text for pair, ratio in zip(figures, ratios, strict=True) for text in _cells(pair, ratio))
        )
    Console(width=140).print(table)
    print(f"bytes received: geometric mean of the ratios {_geometric_mean(received):.3f}, {_spread(received)}")
    print(f"memory: geometric mean of the ratios {_geometric_mean(memory):.3f}, {_spread(memory)}")
    close = [sum(low <= ratio <= high for ratio in large) for low, high in _CLOSE]
    print(f"memory above 1 MB: {len(large)} programs, " + ", ".join(map(_within, close, _CLOSE)))
    return 0


def of_corpus() -> Iterator[tuple[str, Measured]]:
    """Yield the programs of the corpus."""
    return ((name, partial(_of_corpus, program)) for name, program in PROGRAMS.items())


def with_libraries() -> Iterator[tuple[str, Measured]]:
    """Yield the programs of `bench/drop_in.py` that use a library."""
    return ((name, partial(_of_function, name)) for name in names() if not name.startswith("corpus"))


def _of_function(name: str) -> Figures:
    program = build(name)()
    with jax.set_mesh(program.mesh), capture():
        account = sdy.account(sdy.jit(program.function), *program.arguments)
        compiled = account.compiled
    assert compiled is not None
    return (compiled.bytes_received, account.bytes_received), (compiled.memory or 0, account.memory)


def _of_corpus(program: Program) -> Figures:
    module = partitioned(program.module())
    compiled = compile(module)
    real = bytes_really_received(compiled.compiled_text(), _DEVICES)
    return (real, bytes_received(module)), (compiled.peak_bytes() or 0, peak_bytes(module))


def _within(number: int, bounds: tuple[float, float]) -> str:
    return f"{number} within {bounds[0]} to {bounds[1]}"


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
