"""Command-line options and exit statuses that all tools share.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | a negative result: programs differ, results mismatch, lint has findings, or no layout fits |
| 2 | an invalid flag, file or program |
"""

import argparse

from sdy.byte_sizes import parse_bytes
from sdy.tools.custom_call_rules import add_rules_option
from sdy.tools.imports import add_import_option
from sdy.tools.version import VersionAction

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
