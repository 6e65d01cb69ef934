"""The files that a project's wheel installs, without installing it."""

from pathlib import Path
from zipfile import ZipFile

from hatchling.builders.wheel import WheelBuilder


def make_wheel(source: Path, folder: Path) -> Path:
    """Build the wheel of `source`, unpack it into `folder`, and return `folder`."""
    (wheel,) = WheelBuilder(str(source)).build(directory=str(folder.with_suffix(".built")), versions=["standard"])
    ZipFile(wheel).extractall(folder)
    return folder
