"""Files of installed libraries, whose lines a person cannot edit."""

import sysconfig
from functools import lru_cache
from pathlib import Path

_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages."""

_OWN = tuple(f"{path}/" for path in (Path(__file__).parent, *map(sysconfig.get_path, ("stdlib", "platstdlib"))))
"""Folders of this package and of the standard library."""


@lru_cache(maxsize=1024)
def is_library(filename: str) -> bool:
    """Return whether a file belongs to an installed package, to the standard library or to this package."""
    return not _INSTALLED.isdisjoint(Path(filename).parts) or filename.startswith((*_OWN, "<frozen"))
