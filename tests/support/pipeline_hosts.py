"""One process of several that train by a pipeline.

    python pipeline_hosts.py COORDINATOR COUNT INDEX OUTPUT.npz PROGRAM.mlir

joins COUNT processes with 8 CPU devices in all, runs two steps of `pipelines.Training`, partitioned to PROGRAM.mlir,
and saves the results whose shards this process has, as `STEP.NUMBER`, and the names of the meshes of its programs.
"""

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import sdy
from host_processes import join
from pipelines import Training


def main(coordinator: str, count: str, index: str, output: str, program: str) -> None:
    join(coordinator, count, index)
    pipeline = sdy.mpmd.run(Path(program).read_text())
    training = Training(corrected=True)
    state = jax.tree.leaves(training.state())
    held: dict[str, Any] = {}
    for number in range(2):
        loss, *state = pipeline(*state, *training.batch())
        held |= {
            f"{number}.{index}": np.asarray(result)
            for index, result in enumerate((loss, *state))
            if result.is_fully_addressable
        }
    np.savez(output, meshes=np.array(sorted({mesh for _, mesh in pipeline.programs})), **held)


if __name__ == "__main__":
    main(*sys.argv[1:])
