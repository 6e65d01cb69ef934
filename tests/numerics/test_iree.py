"""Partitioned programs as plain StableHLO in another compiler: IREE compiles them, and runs those without collectives.

    pip install iree-base-compiler iree-base-runtime

IREE's CPU runtime has no collectives: programs that have some are only compiled.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

import sdy
from plain_programs import DEVICES, PlainProgram

tools = pytest.importorskip("iree.compiler.tools", reason="IREE's compiler is not installed")
runtime = pytest.importorskip("iree.runtime", reason="IREE's runtime is not installed")

TARGET = "1.9.0"
"""The version of StableHLO that the portable artifacts target."""

WITHOUT_COLLECTIVES = (
    "convolutions: in groups",
    "decoding: heads split",
    "indexing: gather in batches",
    "linear algebra: distances",
    "loops: filter",
    "shapes: pixels",
)
WITH_COLLECTIVES = ("training: adam", "training: mixture of experts")


def compiled(program: PlainProgram) -> bytes:
    """Compile the program's portable artifact with IREE."""
    artifact = sdy.to_bytecode(program.module, TARGET)
    flags = ["--iree-llvmcpu-target-cpu=generic"]
    return tools.compile_str(artifact, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=flags)


@pytest.mark.parametrize("name", WITHOUT_COLLECTIVES)
def test_programs_without_collectives_run(name: str) -> None:
    program = PlainProgram.of(name)
    main = runtime.load_vm_flatbuffer(compiled(program), driver="local-task")["main"]
    count = len(program.inputs) // DEVICES
    results: dict[str, np.ndarray] = {}
    for device in range(DEVICES):
        returned: object = main(*(program.inputs[f"{number}/{device}"] for number in range(count)))
        each = cast(Sequence[object], returned) if isinstance(returned, tuple) else [returned]
        results |= {f"{number}/{device}": np.asarray(result) for number, result in enumerate(each)}
    program.check(results)


@pytest.mark.parametrize("name", WITH_COLLECTIVES)
def test_programs_with_collectives_compile(name: str) -> None:
    program = PlainProgram.of(name)
    assert "stablehlo.all_reduce" in sdy.format(program.module)
    assert compiled(program)
