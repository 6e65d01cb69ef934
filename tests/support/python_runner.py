"""`python python_runner.py FOLDER ...`: runs printed Python programs on eight devices, with JAX alone.

A folder contains the program as `program.py` and its arguments in `inputs`, pickled. The results are written to
`results`, and the compiled HLO to `compiled.txt`.
"""

import os
import pickle
import re
import runpy
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import numpy as np


def main(folders: list[str]) -> None:
    for folder in map(Path, folders):
        with jax.enable_x64(False):
            run(folder)
        jax.config.update("jax_enable_x64", False)
    assert not [name for name in sys.modules if name.partition(".")[0] == "sdy"]


def run(folder: Path) -> None:
    text = (folder / "program.py").read_text()
    name = re.search(r"`(\w+)`", text)
    assert name is not None
    function = runpy.run_path(str(folder / "program.py"))[name[1]]
    inputs = pickle.loads((folder / "inputs").read_bytes())
    with jax.enable_x64("jax_enable_x64" in text):
        jitted = function if hasattr(function, "lower") else jax.jit(function)
        compiled = jitted.lower(*inputs).compile()
        results = [np.asarray(result) for result in jax.tree.leaves(compiled(*inputs))]
    (folder / "results").write_bytes(pickle.dumps(results))
    (folder / "compiled.txt").write_text(compiled.as_text())


if __name__ == "__main__":
    main(sys.argv[1:])
