"""`sdy-plain`: partitioned programs run without this package, and compute the unpartitioned results."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import sdy
from corpus import PROGRAMS
from plain_programs import PlainProgram
from samples import sample

RUNNER = Path(__file__).parents[1] / "support" / "plain_runner.py"


@pytest.mark.parametrize("form", sample(["hlo", "mlir"]))
def test_programs_run_by_pjrt_alone(form: str, tmp_path: Path) -> None:
    programs = [PlainProgram.of(name) for name in sample(PROGRAMS, one_in=60)]
    folders = [written(program, tmp_path / str(number), form) for number, program in enumerate(programs)]
    done = subprocess.run([sys.executable, RUNNER, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for program, folder in zip(programs, folders, strict=True):
        program.check(pickle.loads((folder / "results").read_bytes()))


def written(program: PlainProgram, folder: Path, form: str) -> Path:
    """Write `program` in this form, with its inputs, and return the folder."""
    folder.mkdir()
    (folder / "inputs").write_bytes(pickle.dumps(program.inputs))
    text = sdy.format(program.module)
    assert "sdy" not in text
    (folder / f"program.{form}").write_bytes(text.encode() if form == "mlir" else sdy.to_hlo_proto(program.module))
    return folder
