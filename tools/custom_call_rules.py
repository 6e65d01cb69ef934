"""The option --custom-call-rules: a file of sharding rules for custom calls, in all tools that propagate."""

from typing import TYPE_CHECKING

from sdy.passes.driver import read

if TYPE_CHECKING:
    from argparse import ArgumentParser

NAME = "custom-call-rules"
HELP = "read sharding rules of custom calls from this file, one `target: operands -> results` per line"


def add_rules_option(parser: "ArgumentParser") -> None:
    """Add the option to a parser; `take_rules` reads its file."""
    parser.add_argument(f"--{NAME}", metavar="FILE", help=HELP)


def take_rules(path: str | None) -> None:
    """Register the rules in a file, if one is given, for the rest of the process.

    Raises:
        DiagnosticError: The file cannot be read, or has an invalid rule.
    """
    if path is not None:
        from sdy.rules.call_target_file import annotate_from  # imported lazily: few command lines have the option

        source = read(path)
        annotate_from(source.text, source.name)
