"""One process of several that train by a pipeline.

    python pipeline_hosts.py COORDINATOR COUNT INDEX OUTPUT.npz PROGRAM.mlir [DYING]

joins COUNT processes with 8 CPU devices in all, runs two steps of `pipelines.Training`, partitioned to PROGRAM.mlir or,
if that is empty, by `sdy.mpmd.stages`, and saves the results whose shards this process has, as `STEP.NUMBER`, and the
names of the meshes of its programs. The process with the number DYING dies after the first step.
"""

import os
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, PartitionSpec

import sdy
from host_processes import join
from pipelines import Training
from sdy.passes.jax.mpmd.pipeline import Pipeline

DIED = 9
HEARTBEAT = 10
"""The seconds after which jax notices that a process has died."""


def in_stages(training: Training) -> Pipeline:
    """Return the pipeline that `sdy.mpmd.stages` makes."""
    mesh = jax.make_mesh((training.stages, training.devices), ("stage", "data"), axis_types=(AxisType.Auto,) * 2)
    rows = PartitionSpec("data")
    step = sdy.mpmd.stages(mesh).jit(training.step(), in_shardings=(None, rows, rows), donate_argnums=0)
    return step.pipeline(training.state(), *training.batch())


def main(coordinator: str, count: str, index: str, output: str, program: str, dying: str = "") -> None:
    join(coordinator, count, index, HEARTBEAT if dying else 100)
    training = Training(corrected=True)
    state = jax.tree.leaves(training.state())
    pipeline = sdy.mpmd.run(Path(program).read_text()) if program else in_stages(training)
    held: dict[str, Any] = {}
    for number in range(2):
        if number == 1 and index == dying:
            os._exit(DIED)
        loss, *state = pipeline(*state, *training.batch())
        held |= {
            f"{number}.{index}": np.asarray(result)
            for index, result in enumerate((loss, *state))
            if result.is_fully_addressable
        }
    np.savez(output, meshes=np.array(sorted({mesh for _, mesh in pipeline.programs})), **held)


if __name__ == "__main__":
    main(*sys.argv[1:])
