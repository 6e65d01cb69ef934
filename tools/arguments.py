"""Command-line options that tools share: one name, one meaning and one exit status in all of them.

| exit status | meaning |
|---|---|
| 0 | done: the answer is yes |
| 1 | the answer is no: programs differ, results mismatch, there are findings, nothing fits |
| 2 | no answer: a wrong flag, an unreadable file, a program that is refused |
"""

import argparse

from sdy.byte_sizes import parse_bytes
from sdy.tools.custom_call_rules import add_rules_option
from sdy.tools.imports import add_import_option
from sdy.tools.version import VersionAction

PROGRAM = "the program; - is standard input"


def tool_parser(name: str, description: str, examples: str = "", no: str = "") -> argparse.ArgumentParser:
    """Return a parser with `--version`, `--custom-call-rules` and `--import`, and a help text that shows `examples`.

    Args:
        name: of the tool, such as `sdy-run`.
        description: the first paragraphs of `--help`.
        examples: command lines, as the end of `--help`.
        no: when the exit status is 1, such as "the programs differ"; empty where it never is.
    """
    status = f"exit status: 0 done; {f'1 {no}; ' if no else ''}2 a wrong flag, file or program\n"
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
    """Add `--inputs` and `--seed`: the arrays that the program runs on."""
    parser.add_argument("--inputs", metavar="FILE.npz", help="read the inputs from this file (default: random ones)")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="of random inputs (default: 0)")


def add_hardware_option(parser: argparse.ArgumentParser, purpose: str, default: str | None = None) -> None:
    """Add `--hardware`: a hardware file, or the name of a preset."""
    from sdy.passes.spmd.costs.hardware import presets

    suffix = f" (default: {default})" if default else ""
    help_text = f"{purpose}: a hardware file, or one of {', '.join(presets())}{suffix}"
    parser.add_argument("--hardware", default=default, metavar="NAME", help=help_text)


def natural(text: str) -> int:
    """Parse a number from 0 on. Raises ArgumentTypeError."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """Parse a number from 1 on. Raises ArgumentTypeError."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return int(text)


def byte_size(text: str) -> int:
    """Parse a number of bytes, such as 64M. Raises ArgumentTypeError."""
    try:
        return parse_bytes(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
