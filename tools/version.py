"""The option --version: the versions of a tool and of its main dependencies, for bug reports."""

import argparse
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_DEPENDENCIES = ("jax", "jaxlib", "xdsl")
_HELP = "print the version, and those of jax, jaxlib and xdsl"


def version_line(name: str) -> str:
    """Return the version line of a tool, such as `sdy-opt 0.1.0 (jax 0.10.2, jaxlib 0.10.2, xdsl 0.74.0)`.

    It is read from package metadata, without importing the packages.
    """
    return f"{name} {_version('sdy')} ({', '.join(f'{package} {_version(package)}' for package in _DEPENDENCIES)})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


class VersionAction(argparse.Action):
    """The option --version of a parser. Unlike argparse's, it reads the versions only when the option is given."""

    def __init__(self, option_strings: list[str], dest: str):
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=_HELP)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_line(parser.prog))
        parser.exit()
