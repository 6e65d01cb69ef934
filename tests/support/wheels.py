"""What a project's wheel installs, without installing it."""

from pathlib import Path
from zipfile import ZipFile

from hatchling.builders.wheel import WheelBuilder


def make_wheel(source: Path, folder: Path) -> Path:
    """The folder, with what a wheel that is built in `source` puts into an environment."""
    (wheel,) = WheelBuilder(str(source)).build(directory=str(folder.with_suffix(".built")), versions=["standard"])
    ZipFile(wheel).extractall(folder)
    return folder
