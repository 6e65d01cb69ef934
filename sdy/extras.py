"""What is installed beside this package for a part of it: `pip install 'sdy[jax]'`."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

_EXTRAS = {
    "jax": "jax",
    "jaxlib": "jax",
    "scipy": "jax",
    "numba": "auto",
    "pytoulbar2": "auto",
    "dask": "dask",
    "torch": "torch",
    "torchax": "torch",
}
"""The extra of this package that brings each package."""


class MissingPackageError(ModuleNotFoundError):
    """A package that is not installed is needed; as text, which, and how to install it."""


@contextmanager
def told_what_is_missing(what: str) -> Generator[None]:
    """Tell what to install where `what`, such as `sdy.jit`, needs a package that an extra of this one brings."""
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
    """The version of a package, as the folder with its metadata is called; None where it is not installed.

    `importlib.metadata` would tell too: to import that takes longer than to print a small module.
    """
    begin, end = f"{package}-", ".dist-info"
    folders = (folder or os.curdir for folder in sys.path)
    names = (name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder))
    found = next((name for name in names if name.startswith(begin) and name.endswith(end)), None)
    return found and found.removeprefix(begin).removesuffix(end)
