"""sdy-report: write an HTML report of a program's communication and memory."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sdy.passes.account.report.html_report import check_replaceable
from sdy.passes.account.report.report import report
from sdy.passes.driver import STANDARD_STREAM, check_writable, read
from sdy.text import parse
from sdy.tools.arguments import PROGRAM, add_hardware_option, add_under_option, tool_parser
from sdy.tools.devices import check_enough, enough_devices
from sdy.tools.entry import guarded
from sdy.tools.extensions import import_modules, take_rules
from sdy.tools.progress import progress
from sdy.tools.terminal import Terminal

_DESCRIPTION = """\
Write an HTML report of a StableHLO program: its avoidable costs, its collectives with their reasons, its memory over
time, the shardings of its arrays, and its operations. The report is one self-contained file. A program that has not
been propagated is propagated first. The report of a pipeline on several meshes has its timeline and the costs of each.
"""

_EXAMPLES = """\
examples:
  sdy-report examples/transformer.mlir                 writes transformer.html here
  sdy-report step.mlir -o out/step.html                writes to the given file
  sdy-report step.mlir --hardware h100-8               adds predicted times and a timeline
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-report", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("file", metavar="FILE.mlir", help=PROGRAM)
    parser.add_argument("-o", "--output", metavar="FILE.html", help="the output file; - is standard output")
    add_hardware_option(parser, "predict times")
    parser.add_argument("--compile", action="store_true", help="compile with XLA, and add its bytes and memory")
    add_under_option(parser)
    parser.add_argument("--perfetto", metavar="FILE.json", help="also write the timeline, for https://ui.perfetto.dev")
    parser.add_argument("--no-findings", action="store_true", help="leave out the findings of sdy-lint")
    parser.add_argument("--force", action="store_true", help="replace a file that is not a report")
    arguments = parser.parse_args(argv)
    if arguments.perfetto and not arguments.hardware:
        parser.error("--perfetto needs --hardware, such as --hardware h100-8")
    return guarded(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Execute the command line.

    Raises:
        DiagnosticError: The program is invalid, or the output file exists and is not a report.
    """
    output: str = arguments.output or f"{Path(arguments.file).stem.strip('-') or 'report'}.html"
    if not arguments.force:
        check_replaceable(output)
    check_writable(output, arguments.perfetto)
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    source = read(arguments.file)
    with progress():
        module = parse(source.text, source.name)
        if arguments.compile or arguments.under:
            check_enough(module)
            enough_devices(module)
        page = report(
            module,
            hardware=arguments.hardware,
            compiled=arguments.compile,
            findings=not arguments.no_findings,
            under=arguments.under,
        )
        page.write(output, force=True)
        if arguments.perfetto:
            page.write_trace(arguments.perfetto)
    if output != STANDARD_STREAM:
        Terminal().print("\n".join([f"wrote {output}", *page.headline]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
