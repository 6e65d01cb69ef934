"""--custom-call-rules: a file with the sharding rules of custom calls, for all tools that propagate."""

from typing import TYPE_CHECKING

from sdy.passes.driver import read

if TYPE_CHECKING:
    from argparse import ArgumentParser

NAME = "custom-call-rules"
HELP = "take the sharding rules of custom calls from there, one `target: operands -> results` on a line"


def add_rules_option(parser: "ArgumentParser") -> None:
    """Let a command line name a file of rules, for `take_rules`."""
    parser.add_argument(f"--{NAME}", metavar="FILE", help=HELP)


def take_rules(path: str | None) -> None:
    """Register the rules of the file that the command line names, if it does; this process keeps them.

    Raises DiagnosticError where the file can't be read, or a rule in it is wrong.
    """
    if path is not None:
        from sdy.rules.call_target_file import annotate_from  # for which few command lines ask

        source = read(path)
        annotate_from(source.text, source.name)
