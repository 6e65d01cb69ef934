"""Processes that each have some of the stages of a pipeline train as one device does."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import pipeline_hosts
from host_processes import run_hosts, started_hosts
from pipelines import Training
from samples import sample


@pytest.mark.parametrize("name", sample(["stage", "mesh"]))
@pytest.mark.parametrize("hosts", sample([2, 4]))
def test_stages_in_processes_train_as_one_device(hosts: int, name: str, tmp_path: Path):
    """Meshes are called `mesh0`, ... in the partitioned program, `stage0`, ... by `sdy.mpmd.stages`."""
    training = Training(corrected=True)
    program = tmp_path / "program.mlir"
    program.write_text(training.partitioned())
    given = str(program) if name == "mesh" else ""
    held = [np.load(output) for output in run_hosts(pipeline_hosts.__file__, tmp_path, hosts, given)]

    own = 4 // hosts
    for index, results in enumerate(held):
        assert [*results["meshes"]] == [f"{name}{mesh}" for mesh in range(own * index, own * (index + 1))]

    together: dict[str, Any] = {name: results[name] for results in held for name in results.files if name != "meshes"}
    step, state = jax.jit(training.step()), training.state()
    for number in range(2):
        loss, state = step(state, *training.batch())
        for index, want in enumerate((loss, *jax.tree.leaves(state))):
            np.testing.assert_allclose(together[f"{number}.{index}"], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dying", sample([0, 1], one_in=2))
def test_the_other_process_ends_with_an_error_if_one_dies(dying: int, tmp_path: Path):
    """Its results raise, and jax ends it after its timeout of a heartbeat."""
    program = tmp_path / "program.mlir"
    program.write_text(Training(corrected=True).partitioned())
    outputs = [tmp_path / f"host{index}.npz" for index in range(2)]
    with started_hosts(pipeline_hosts.__file__, outputs, str(program), str(dying)) as hosts:
        assert hosts[dying].wait(120) == pipeline_hosts.DIED
        assert hosts[1 - dying].wait(9 * pipeline_hosts.HEARTBEAT) != 0
    assert not outputs[1 - dying].exists()
    said = outputs[1 - dying].with_suffix(".log").read_text()
    assert "JaxRuntimeError" in said or "another task died" in said
