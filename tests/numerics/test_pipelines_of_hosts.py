"""Processes that each have some of the stages of a pipeline train as one device does."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import pipeline_hosts
from host_processes import run_hosts
from pipelines import Training


@pytest.mark.parametrize("hosts", [2, 4])
def test_stages_in_processes_train_as_one_device(hosts: int, tmp_path: Path):
    training = Training(corrected=True)
    program = tmp_path / "program.mlir"
    program.write_text(training.partitioned())
    held = [np.load(output) for output in run_hosts(pipeline_hosts.__file__, tmp_path, hosts, str(program))]

    own = 4 // hosts
    for index, results in enumerate(held):
        assert [*results["meshes"]] == [f"mesh{mesh}" for mesh in range(own * index, own * (index + 1))]

    together: dict[str, Any] = {name: results[name] for results in held for name in results.files if name != "meshes"}
    step, state = jax.jit(training.step()), training.state()
    for number in range(2):
        loss, state = step(state, *training.batch())
        for index, want in enumerate((loss, *jax.tree.leaves(state))):
            np.testing.assert_allclose(together[f"{number}.{index}"], want, rtol=1e-4, atol=1e-5)
