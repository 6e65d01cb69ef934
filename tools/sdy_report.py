"""sdy-report: a page of where the bytes of a program go, and why."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sdy.passes.account.report.report import check_replaceable, report
from sdy.passes.driver import STANDARD_STREAM, read
from sdy.text import parse
from sdy.tools.arguments import PROGRAM, add_hardware_option, tool_parser
from sdy.tools.command import guarded
from sdy.tools.custom_call_rules import take_rules
from sdy.tools.devices import check_enough, enough_devices
from sdy.tools.imports import import_modules
from sdy.tools.progress import progress
from sdy.tools.terminal import Terminal

_DESCRIPTION = """\
Write a page of where the bytes of a StableHLO program go, and why: what devices exchange, each collective with its
reasons; memory over the program's order; how arrays lie on the mesh; and the program itself. The page is one file that
needs no network. A program that has not been propagated is.
"""

_EXAMPLES = """\
examples:
  sdy-report examples/transformer.mlir                 writes transformer.html here
  sdy-report step.mlir -o out/step.html                or where it is told to
  sdy-report step.mlir --hardware h100-8               tells how long everything takes, too
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-report", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("file", metavar="FILE.mlir", help=PROGRAM)
    parser.add_argument("-o", "--output", metavar="FILE.html", help="write the page there; - is standard output")
    add_hardware_option(parser, "predict times")
    parser.add_argument("--compile", action="store_true", help="have XLA compile the program, and show its figures too")
    parser.add_argument("--force", action="store_true", help="replace a file that is no report")
    arguments = parser.parse_args(argv)
    return guarded(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Do what the command line asks for. Raises DiagnosticError where the program, or what it names, is wrong."""
    output: str = arguments.output or f"{Path(arguments.file).stem.strip('-') or 'report'}.html"
    if not arguments.force:
        check_replaceable(output)
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    source = read(arguments.file)
    with progress():
        module = parse(source.text, source.name)
        if arguments.compile:
            check_enough(module)
            enough_devices(module)
        page = report(module, hardware=arguments.hardware, compiled=arguments.compile)
        page.write(output, force=True)
    if output != STANDARD_STREAM:
        Terminal().print("\n".join([f"wrote {output}", *page.headline]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
