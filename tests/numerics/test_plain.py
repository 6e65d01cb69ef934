"""`sdy-plain`: partitioned programs run where nobody knows this package, and compute what the whole ones do."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sdy
from corpus import PROGRAMS
from partitioned_programs import assert_same, partitioned
from sdy.interpreter.shards import shard, together
from sdy.passes.driver import run_passes
from sdy.passes.jax.compile import compile, compile_unpartitioned
from sdy.passes.jax.inputs import random_inputs
from sdy.passes.jax.interface import Interface
from sdy.passes.partitioning.plain import PlainPass

RUNNER = Path(__file__).parents[1] / "support" / "plain_runner.py"
DEVICES = 8
ONE_IN = 20
"""Of so many programs of the corpus, one is run in each form where not all are."""


@pytest.mark.parametrize("form", ["mlir", "hlo"])
def test_programs_run_by_pjrt_alone(form: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    names = [*PROGRAMS][:: 1 if pytestconfig.option.every_program else ONE_IN]
    expected = {name: written(name, tmp_path / str(number), form) for number, name in enumerate(names)}
    folders = [str(tmp_path / str(number)) for number in range(len(names))]
    done = subprocess.run([sys.executable, RUNNER, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (name, (interface, whole)), folder in zip(expected.items(), folders, strict=True):
        parts = pickle.loads(Path(folder, "results").read_bytes())
        for number, placed in enumerate(interface.outputs):
            of_devices = {device: parts[f"{number}/{device}"] for device in range(DEVICES)}
            result = of_devices[0] if placed is None else together(of_devices, placed.sharding.dim_axes, placed.mesh)
            assert_same([result], [whole[number]], PROGRAMS[name].tolerance)


def written(name: str, folder: Path, form: str) -> tuple[Interface, list[np.ndarray]]:
    """Write the program of one device and its inputs; what the program takes and gives, and what the whole one does."""
    module = PROGRAMS[name].module()
    local = partitioned(module)
    interface = Interface.of(local)
    inputs = [np.asarray(each) for each in random_inputs(compile(local).inputs, seed=0)]
    parts = {
        f"{number}/{device}": each if placed is None else shard(each, placed.sharding.dim_axes, placed.mesh, device)
        for number, (each, placed) in enumerate(zip(inputs, interface.inputs, strict=True))
        for device in range(DEVICES)
    }
    folder.mkdir()
    (folder / "inputs").write_bytes(pickle.dumps(parts))
    run_passes(local, [PlainPass()])
    text = sdy.format(local)
    assert "sdy" not in text
    (folder / f"program.{form}").write_bytes(text.encode() if form == "mlir" else sdy.to_hlo_proto(local))
    return interface, [np.asarray(each) for each in compile_unpartitioned(module)(*inputs)]
