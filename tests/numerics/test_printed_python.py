"""`sdy.to_python`: printed programs run without this package, and compute and communicate what sdy's do."""

import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sdy
from corpus import PROGRAMS
from partitioned_programs import assert_same, partitioned
from samples import sample
from sdy.passes.jax.api.compile import CompiledProgram, compile
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.program.inputs import random_inputs
from sdy.passes.jax.program.plain_module import without_shardings

RUNNER = Path(__file__).parents[1] / "support" / "python_runner.py"
DEVICES = 8


@dataclass
class Printed:
    """A printed program in a folder, with the results that it has to compute."""

    name: str
    program: CompiledProgram
    inputs: list[np.ndarray[Any, Any]]
    folder: Path

    @classmethod
    def of(cls, name: str, folder: Path, *, whole: bool) -> "Printed":
        folder.mkdir()
        original = PROGRAMS[name].module()
        local = partitioned(original)
        program = compile(local)
        inputs = [np.asarray(value) for value in random_inputs(program.inputs, seed=0)]
        (folder / "program.py").write_text(sdy.to_python(without_shardings(original) if whole else local))
        (folder / "inputs").write_bytes(pickle.dumps(inputs))
        return cls(name, program, inputs, folder)

    def check(self) -> None:
        results = pickle.loads((self.folder / "results").read_bytes())
        expected = [np.asarray(value) for value in self.program(*self.inputs)]
        assert_same(results, expected, 3 * PROGRAMS[self.name].tolerance)

    def received(self) -> tuple[float, float]:
        """Return the bytes that a device receives in the printed program, and in the one that was printed."""
        hlo = (self.folder / "compiled.txt").read_text()
        return bytes_received(hlo, DEVICES), bytes_received(self.program.compiled_text(), DEVICES)


@pytest.mark.parametrize("whole", [False, True], ids=["of one device", "whole"])
def test_printed_programs_run_by_jax_alone(whole: bool, tmp_path: Path) -> None:
    names = sample(PROGRAMS, one_in=40)
    programs = [Printed.of(name, tmp_path / str(number), whole=whole) for number, name in enumerate(names)]
    folders = [program.folder for program in programs]
    done = subprocess.run([sys.executable, RUNNER, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for program in programs:
        program.check()
        ours, wanted = program.received()
        assert whole or ours <= wanted, program.name


def test_printed_programs_are_formatted_and_typed(tmp_path: Path) -> None:
    for number, name in enumerate(sample(PROGRAMS, one_in=40)):
        original = PROGRAMS[name].module()
        for kind, module in (("whole", original), ("local", partitioned(original))):
            (tmp_path / f"program_{number}_{kind}.py").write_text(sdy.to_python(module))
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "basic"}')
    for command in (
        ["ruff", "check", "--isolated", "."],
        ["ruff", "format", "--check", "--isolated", "."],
        ["pyright", "--pythonpath", sys.executable, "."],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
