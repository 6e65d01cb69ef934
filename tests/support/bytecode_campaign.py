"""Fuzzing of the bytecode reader: damaged bytecode is read or refused, and a crash of jaxlib becomes an error.

    python tests/support/bytecode_campaign.py --count 10000 --seed 0

Each input is the output of `sdy.to_bytecode` or `jax.export`, damaged. A forked process asks jaxlib for the text, as
`jaxlib_converter.py` does, and our parser reads it. The outcomes are printed as JSON: the number of inputs that are
"read" or "refused", those at which jaxlib "dies" or "hangs", and other exceptions of our own code, which are bugs.
"""

import argparse
import json
import multiprocessing
import random
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jax import export

import sdy
from forked import said
from sdy.diagnostics import DiagnosticError, capture
from sdy.text import bytecode
from sdy.text.bytecode import jaxlib_converter

ROOT = Path(__file__).parents[2]
SECONDS = 5
"""Timeout of one input, after which it counts as hanging."""

NAME = "damaged.mlirbc"
"""File name in error messages."""


def programs() -> list[bytes]:
    """Return the undamaged bytecode: small programs in each of the forms."""
    module = sdy.parse((ROOT / "lit_tests" / "dialect" / "computations.mlir").read_text())
    exported = export.export(jax.jit(lambda x: jax.numpy.sin(x) @ x))(np.zeros((4, 4), np.float32))
    return [
        sdy.to_bytecode(module),
        exported.mlir_module_serialized,
        sdy.to_bytecode(sdy.parse(exported.mlir_module_serialized)),
        bytes(exported.serialize()),
    ]


def damaged(data: bytes, choices: random.Random) -> bytes:
    """Truncate `data`, or overwrite, delete or duplicate some of its bytes."""
    changed = bytearray(data)
    start, end = choices.randrange(len(data)), choices.randrange(1, 16)
    match choices.choices(("cut", "change", "remove", "repeat"), (1, 6, 1, 1))[0]:
        case "cut":
            del changed[start:]
        case "change":
            for _ in range(choices.choice((1, 1, 2, 8))):
                changed[choices.randrange(len(data))] = choices.randrange(256)
        case "remove":
            del changed[start : start + end]
        case _:
            changed[start:start] = changed[start : start + end]
    return bytes(changed)


def _in_this_process(data: bytes, what: str, *options: str) -> bytes | bytecode.Refusal:
    """Convert `data` with jaxlib in this process, in place of `jaxlib_converter.py`."""
    signal.alarm(SECONDS)
    status, answer = jaxlib_converter.run_command(what, options, data)
    signal.alarm(0)
    if status == 0:
        return answer
    message, where = json.loads(answer)
    assert message
    assert isinstance(where, str)
    return bytecode.Refusal(message)


def _fare(data: bytes) -> str:
    """Return the outcome of `data`; may end the process."""
    bytecode.run_jaxlib = _in_this_process
    try:
        with capture():
            sdy.parse(data, NAME)
    except DiagnosticError as problem:
        return "refused" if NAME in str(problem) else f"refused without a name: {problem.message}"
    return "read"


def fare(data: bytes) -> str:
    """Return the outcome of `data`, in a forked process."""
    return said(partial(_fare, data))


def main(words: Sequence[str]) -> None:
    """Count and print the outcomes of `--count` inputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    choices = random.Random(arguments.seed)
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # a process in which jax has compiled cannot be forked
        whole = pool.apply(programs)
    for data in whole:
        assert fare(data) == "read", fare(data)
    counts = Counter(fare(damaged(choices.choice(whole), choices)) for _ in range(arguments.count))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
