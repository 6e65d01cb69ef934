"""Command-line options, such as --version, and exit statuses that all tools share.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | a negative result: programs differ, results mismatch, lint has findings, or no layout fits |
| 2 | an invalid flag, file or program, or a rule of lint failed |
"""

import argparse
from typing import Any

import sdy
from sdy.extras import installed_version
from sdy.formatting import parse_bytes
from sdy.tools.extensions import add_import_option, add_rules_option

PROGRAM = "the program; - is standard input"


def tool_parser(name: str, description: str, examples: str = "", no: str = "") -> argparse.ArgumentParser:
    """Create a parser with the options `--version`, `--custom-call-rules` and `--import`.

    Args:
        name: The name of the tool, such as `sdy-run`.
        description: The first paragraphs of `--help`.
        examples: Command lines, for the end of `--help`.
        no: The meaning of exit status 1, such as "the programs differ"; empty if the tool never returns it.
    """
    status = f"exit status: 0 success; {f'1 {no}; ' if no else ''}2 invalid flag, file or program\n"
    parser = argparse.ArgumentParser(
        name,
        description=description,
        epilog=f"{examples}\n{status}" if examples else status,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=VersionAction)
    add_rules_option(parser)
    add_import_option(parser)
    return parser


def add_inputs_options(parser: argparse.ArgumentParser) -> None:
    """Add the options `--inputs` and `--seed`, for the inputs of a program."""
    parser.add_argument("--inputs", metavar="FILE.npz", help="read the inputs from this file (default: random inputs)")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="seed of random inputs (default: 0)")


def add_hardware_option(parser: argparse.ArgumentParser, purpose: str, default: str | None = None) -> None:
    """Add the option `--hardware`: a hardware file, or the name of a preset."""
    from sdy.passes.spmd.costs.hardware import presets

    suffix = f" (default: {default})" if default else ""
    help_text = f"{purpose}: a hardware file, or one of {', '.join(presets())}{suffix}"
    parser.add_argument("--hardware", default=default, metavar="NAME", help=help_text)


def add_under_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--under`: another partitioner, whose costs are shown too."""
    help_text = "also show the costs of the program as XLA's partitioner compiles it under jax.jit"
    parser.add_argument("--under", choices=["jax.jit"], help=help_text)


def natural(text: str) -> int:
    """Parse a nonnegative integer, or raise ArgumentTypeError."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a nonnegative integer")
    return int(text)


def positive(text: str) -> int:
    """Parse a positive integer, or raise ArgumentTypeError."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive integer")
    return int(text)


def byte_size(text: str) -> int:
    """Parse a number of bytes such as 64M, or raise ArgumentTypeError."""
    try:
        return parse_bytes(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


_DEPENDENCIES = ("jax", "jaxlib", "xdsl")
_HELP = "print the version, and those of jax, jaxlib and xdsl"


def version_line(name: str) -> str:
    """Return the version line of a tool, such as `sdy-opt 0.1.0 (jax 0.10.2, jaxlib 0.10.2, xdsl 0.74.0)`.

    The versions of the dependencies are read from package metadata, without importing the packages.
    """
    versions = (f"{package} {installed_version(package) or 'not installed'}" for package in _DEPENDENCIES)
    return f"{name} {sdy.__version__} ({', '.join(versions)})"


class VersionAction(argparse.Action):
    """The option --version of a parser. Unlike argparse's, it reads the versions only when the option is given."""

    def __init__(self, option_strings: list[str], dest: str):
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=_HELP)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_line(parser.prog))
        parser.exit()
