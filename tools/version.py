"""--version: of what a tool is made, which is what a report of a mistake should say."""

import argparse
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_MADE_OF = ("jax", "jaxlib", "xdsl")
_HELP = "print the version, and those of jax, jaxlib and xdsl"


def version_line(name: str) -> str:
    """`sdy-opt 0.1.0 (jax 0.10.2, jaxlib 0.10.2, xdsl 0.74.0)` for the tool `name`, without importing any of them."""
    return f"{name} {_version('sdy')} ({', '.join(f'{package} {_version(package)}' for package in _MADE_OF)})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


class VersionAction(argparse.Action):
    """The option --version of a parser; argparse's own would ask for the versions where nobody wants to know."""

    def __init__(self, option_strings: list[str], dest: str):
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=_HELP)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_line(parser.prog))
        parser.exit()
