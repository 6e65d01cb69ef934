"""`sdy.jit` as a drop-in replacement of `jax.jit`: costs and results of real programs under both.

    python bench/drop_in.py [PART OF A NAME ...] [--list]          all programs by default

It requires `pip install '.[libraries]'`. A program is a function with arguments sharded over 8 virtual CPU devices, and
no other annotations. Each row is printed when it is measured:

    shardings   "equal" if all results have the shardings of jax.jit, else the number of results that have not
    received    the bytes received by a device in all collectives of the compiled HLO: sdy's, jax.jit's, the ratio
    memory      the ratio of the memory of a device, for arguments, results and temporaries
    compile     the ratio of the compile times from the Python function, in processor seconds
    numbers     "equal" if results differ by no more than the tolerance of `first_mismatch` in
                passes/jax/program/rounding.py: 16 times the random walk of the roundings of the module, in its
                narrowest type, plus 16 times the change under perturbed arguments

The exit status is 1 if results differ, a program is rejected, or its process crashes.
"""

import argparse
import math
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax

sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

from drop_in_programs import build, names
from side_by_side import Comparison, compare

_PROGRAMS_PER_PROCESS = 20
_PATIENCE = 600
"""The time limit of a program in seconds, after which its process is killed."""

MOST = 1.05
"""The goal for bytes received and memory, relative to jax.jit."""

_ALIGNMENT = 640
"""The bytes by which the memory of a device may exceed the goal. XLA aligns buffers to 64 bytes, so that the memory of
programs on arrays of a few dozen bytes, as in the tests' corpus, measures the number of buffers. Ten more buffers, for
lookup tables and halos, are negligible with larger arrays: all programs that pass by this allowance, except those in
GROWING, need at most 1.05 times the memory of jax.jit if each dimension is 8 times as large."""

_MEAN = 0.85
"""The goal for the geometric mean of the ratios of bytes received."""

_FFT = "XLA's program fails when it runs: the transform's operand is laid out as the transform does not take it"
_BITS = "XLA does not compile a sum of bits, or a product of integers, over devices"
_PADDING = "XLA's numbers are wrong where it pads what is split unevenly"

BEYOND_JAX: Mapping[str, str] = {
    "flax_linen: BERT, fully sharded": "a key's bias has no gradient but what rounding leaves, which is then squared",
    "corpus, spectra: convolution": _FFT,
    "corpus, numbers: reduction of integers": _BITS,
    "corpus, numbers: reduction from a value": "XLA's numbers are wrong: each device begins from the value",
    "corpus, numbers: reduction of bits from a value": _BITS,
    "corpus, numbers: checksum": _BITS,
    "corpus, uneven: reductions of integers": _BITS,
    "corpus, uneven: scatter at one place": _PADDING,
    "corpus, uneven: scatter by narrow indices": _PADDING,
    "corpus, uneven: embedding's gradient": _PADDING,
    "corpus, uneven: fourier transform": _FFT,
    "corpus, beyond XLA: gradient of an uneven sort": "XLA ends the process",
    "corpus, beyond XLA: gradient of uneven pooling": _PADDING,
    "corpus, beyond XLA: scatter of windows outside": _PADDING,
    "corpus, beyond XLA: parity": _BITS,
}
"""Programs that cannot be compared with jax.jit of jax 0.10.2, with the reasons; tests/numerics/test_corpus.py compares
their results with those of one device."""


GROWING: Mapping[str, str] = {
    "corpus, linear algebra: triangular solve in batches": (
        "XLA gathers the right side first, and keeps it beside two of the matrices, one of them relaid"
    ),
    "corpus, indexing: windows": "the whole table lies beside the result, where jax.jit gathers parts of that later",
}
"""Programs that need more memory than with jax.jit for larger arrays too, with the reasons."""


@dataclass(frozen=True)
class Failure:
    """The error that ended the measurement of a program, and the stage that raised it."""

    under: str
    message: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare sdy.jit with jax.jit on real programs.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART OF A NAME", help="measure only programs whose name contains one of these"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the programs and exit")
    options = parser.parse_args()
    selected = [name for name in names() if not options.parts or any(part in name for part in options.parts)]
    if options.list:
        print(*selected, sep="\n")
        return 0
    print("| program | shardings | received: sdy | jax.jit | ratio | memory | compile | numbers |")
    print("| --- | --- | --: | --: | --: | --: | --: | --- |")
    outcomes: dict[str, Comparison | Failure] = {}
    for name, outcome in measured(selected):
        print(row(name, outcome), flush=True)
        outcomes[name] = outcome
    print(summary(outcomes))
    return int(any(is_wrong(name, outcome) for name, outcome in outcomes.items()))


def measured(selected: Sequence[str]) -> Generator[tuple[str, Comparison | Failure]]:
    """Measure each program in a subprocess, and yield its name and outcome."""
    context = get_context("spawn")
    stage: Any = context.Array("c", 32)
    pool = None
    for name in selected:
        pool = pool or ProcessPoolExecutor(1, context, _begin, (stage,), max_tasks_per_child=_PROGRAMS_PER_PROCESS)
        try:
            yield name, pool.submit(_measure, name).result()
        except BrokenProcessPool:
            yield name, Failure(stage.value.decode(), "the process ended")
            pool = None


_stage: Any = None


def _begin(stage: Any) -> None:
    """Initialize a subprocess: eight devices, and the shared string for its stage."""
    global _stage
    _stage = stage
    jax.config.update("jax_num_cpu_devices", 8)


def _measure(name: str) -> Comparison | Failure:
    def say(stage: str) -> None:
        _stage.value = stage.encode()

    signal.alarm(_PATIENCE)
    say("building it")
    try:
        return compare(build(name)(), say=say)
    except Exception as problem:
        return Failure(_stage.value.decode(), f"{type(problem).__name__}: {problem}".partition("\n")[0])
    finally:
        signal.alarm(0)


def row(name: str, outcome: Comparison | Failure) -> str:
    """Return the row of the Markdown table."""
    if isinstance(outcome, Failure):
        cells = ["", "", "", "", "", "", f"**{outcome.under}: {outcome.message}**"]
    else:
        cells = [
            f"{len(outcome.other_shardings)} differ" if outcome.other_shardings else "equal",
            f"{outcome.sdy.received:,.0f}",
            f"{outcome.jax.received:,.0f}",
            *(f"{ratio:.2f}" for ratio in (outcome.received, outcome.memory, outcome.seconds)),
            f"**{outcome.mismatch}**" if outcome.mismatch else "equal",
        ]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in [name, *cells]) + " |"


def needs_no_more_memory(name: str, comparison: Comparison) -> bool:
    """Return true if the memory reaches the goal, or exceeds it by an amount that does not grow with the arrays."""
    more = comparison.sdy.memory - comparison.jax.memory
    return comparison.memory <= MOST or (more <= _ALIGNMENT and name not in GROWING)


GOALS: Mapping[str, Callable[[str, Comparison], bool]] = {
    "shardings are equal, or fewer bytes are received": lambda _, c: (
        not c.other_shardings or c.sdy.received < c.jax.received
    ),
    f"received bytes are at most {MOST}": lambda _, c: c.received <= MOST,
    f"memory is at most {MOST}, or {_ALIGNMENT} bytes more": needs_no_more_memory,
    "numbers are equal": lambda _, c: not c.mismatch,
}


def summary(outcomes: Mapping[str, Comparison | Failure]) -> str:
    """Return the number of programs that reach each goal, the programs that do not, and the means of the ratios."""
    compared = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Comparison)}
    lines = ["", f"{len(outcomes)} programs, {len(compared)} of them compared.", ""]
    for goal, is_reached in GOALS.items():
        short = {name: comparison for name, comparison in compared.items() if not is_reached(name, comparison)}
        lines.append(f"- {goal}: {len(compared) - len(short)}; not:")
        lines += [f"  - {name}{_why(name, comparison)}" for name, comparison in short.items()]
    lines.append("- not compared:")
    lines += [
        f"  - {name}: {failure.under}: {failure.message}{_reason(name)}"
        for name, failure in outcomes.items()
        if isinstance(failure, Failure)
    ]
    means = {
        f"received bytes (the goal is {_MEAN})": [c.received for c in compared.values()],
        "memory": [c.memory for c in compared.values()],
        "compile": [c.seconds for c in compared.values()],
    }
    listed_means = ", ".join(f"{what} {_mean(ratios):.3f}" for what, ratios in means.items())
    lines += ["", f"Geometric means of the ratios: {listed_means}"]
    return "\n".join(lines)


def is_wrong(name: str, outcome: Comparison | Failure) -> bool:
    """Return true if the program failed or its results differ, unless jax.jit is known to be the cause."""
    return name not in BEYOND_JAX and (isinstance(outcome, Failure) or outcome.mismatch is not None)


def _why(name: str, comparison: Comparison) -> str:
    shardings = "; ".join(comparison.other_shardings[:2])
    figures = f"received {comparison.received:.2f}, memory {comparison.memory:.2f}"
    return f" ({figures}{', ' * bool(shardings)}{shardings}){_reason(name)}"


def _reason(name: str) -> str:
    reasons = {**GROWING, **BEYOND_JAX}
    return f" ({reasons[name]})" if name in reasons else ""


def _mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean; NaN if there are no ratios."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


if __name__ == "__main__":
    sys.exit(main())
