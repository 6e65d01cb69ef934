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
if "PYTHONPATH" in os.environ:  # lit passes on few variables; this one says which checkout is imported
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
