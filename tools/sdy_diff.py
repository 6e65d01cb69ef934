"""sdy-diff: compare the shardings, the collectives and the costs of two programs."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from sdy.passes.account.diff import summary_of
from sdy.passes.account.difference import Difference
from sdy.passes.account.golden import golden_text
from sdy.passes.account.summary import Summary
from sdy.passes.driver import check_writable, write
from sdy.progress import task
from sdy.tools.arguments import tool_parser
from sdy.tools.entry import guarded
from sdy.tools.extensions import import_modules, take_rules
from sdy.tools.progress import progress
from sdy.tools.terminal import Terminal

_DESCRIPTION = """\
Compare two programs: tensors whose shardings differ, added and removed collectives, and the bytes received and the peak
memory per device. Each is a StableHLO program, which is propagated if it has not been, or a golden layout (.json), as
--golden and sdy.check_golden write it.
"""

_EXAMPLES = """\
examples:
  sdy-diff before.mlir after.mlir
  sdy-diff step.mlir --golden layouts/step.json      writes the golden layout of a program
  sdy-diff layouts/step.json step.mlir               compares the program with it
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-diff", _DESCRIPTION, _EXAMPLES, no="the programs differ")
    parser.add_argument("before", metavar="BEFORE", help="a program, - is standard input, or a golden layout")
    parser.add_argument("after", metavar="AFTER", nargs="?", help="the program or golden layout to compare with BEFORE")
    parser.add_argument("--all", action="store_true", help="show all changes, not only the first of each kind")
    parser.add_argument("--golden", metavar="FILE.json", help="write BEFORE as a golden layout instead of comparing")
    arguments = parser.parse_args(argv)
    if (arguments.after is None) == (arguments.golden is None):
        parser.error("give either a second program or --golden")
    return guarded(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Execute the command line.

    Raises:
        DiagnosticError: A program or a golden layout is invalid.
    """
    check_writable(arguments.golden)
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    paths = [path for path in (arguments.before, arguments.after) if path is not None]
    with progress():
        before, *others = map(_summary, paths)
    if arguments.golden:
        write(arguments.golden, golden_text(before))
        return 0
    difference = Difference(before, *others)
    Terminal().print(difference.shown(most=None) if arguments.all else str(difference))
    return int(bool(difference))


def _summary(path: str) -> Summary:
    with nullcontext() if path.endswith(".json") else task(path):
        return summary_of(path)


if __name__ == "__main__":
    sys.exit(main())
