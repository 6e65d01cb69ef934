"""Third-party packages with entry points, for tests in a separate process."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import forked_commands


def installed(folder: Path, package: str, module: str, group: str, **entries: str) -> None:
    """Make `folder` an import path with `module` as a file and the entry points of `package` in `group`."""
    metadata = folder / f"{package.replace('-', '_')}-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
    points = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{points}")
    (folder / f"{package.replace('-', '_')}.py").write_text(module)


def run(words: Sequence[str], place: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a Python that can import the packages installed at `place`; `text` is its standard input."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])}
    return forked_commands.run(words, stdin=text, env=environment)
