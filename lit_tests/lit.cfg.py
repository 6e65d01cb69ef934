"""lit's configuration: the tests are the .mlir files; the tools are those beside the Python that runs lit."""

import os
import sys
from pathlib import Path
from typing import Any

import lit.formats

config: Any = globals()["config"]

config.name = "sdy"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# lit passes on few variables. These say which checkout is imported, where its bytecode is, and how XLA compiles.
_PASSED = ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "XLA_FLAGS")
config.environment |= {name: os.environ[name] for name in _PASSED if name in os.environ}
