"""Optional dependencies, installed as extras: `pip install 'sdy[jax]'`."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

_EXTRAS = {
    "jax": "jax",
    "jaxlib": "jax",
    "scipy": "jax",
    "dask": "dask",
    "distributed": "dask",
    "zarr": "zarr",
    "torch": "torch",
    "torchax": "torch",
}
"""The extra that installs each package."""


class MissingPackageError(ModuleNotFoundError):
    """An optional dependency is not installed; the message names it and the extra that installs it."""


@contextmanager
def explain_missing_extra(what: str) -> Generator[None]:
    """Convert a failed import of an optional dependency into an error that names the extra to install.

    Args:
        what: The feature that needs the package, such as `sdy.jit`.

    Raises:
        MissingPackageError: The `with` block imports a package of an extra that is not installed.
    """
    try:
        yield
    except MissingPackageError:
        raise
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        message = f"{what} needs {package}, which is not installed: pip install 'sdy[{_EXTRAS[package]}]'"
        raise MissingPackageError(message, name=problem.name, path=problem.path) from problem


@cache
def installed_version(package: str) -> str | None:
    """Return the version of a package, from the name of its metadata folder; None if it is not installed.

    `importlib.metadata` gives the same answer, but importing it takes longer than printing a small module.
    """
    begin, end = f"{package}-", ".dist-info"
    folders = (folder or os.curdir for folder in sys.path)
    names = (name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder))
    folder_name = next((name for name in names if name.startswith(begin) and name.endswith(end)), None)
    return folder_name and folder_name.removeprefix(begin).removesuffix(end)
