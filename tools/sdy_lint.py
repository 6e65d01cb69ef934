"""sdy-lint: find costly sharding patterns in a program, without devices."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from sdy.formatting import columns, format_bytes
from sdy.passes.account.lint.baseline import Baseline
from sdy.passes.account.lint.catalog import RULES, Rule
from sdy.passes.account.lint.config import CONFIG, PROJECT, options_in, options_of_directory
from sdy.passes.account.lint.formats import FORMATS
from sdy.passes.account.lint.lint import lint
from sdy.passes.account.lint.options import LintOptions, check_names, threshold
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.driver import check_writable, read, write
from sdy.text import parse
from sdy.tools.arguments import add_under_option, tool_parser
from sdy.tools.devices import check_enough, enough_devices
from sdy.tools.entry import REFUSED, guarded
from sdy.tools.extensions import import_modules, take_rules

_DESCRIPTION = f"""\
Find costly sharding patterns in a StableHLO program, which is propagated if it has not been. Each finding has its
source line, the reason, its cost per device and step, and a suggested fix. The comment '# sdy: allow(RULE)' in Python,
or '// sdy: allow(RULE)' in MLIR, on a line or above it, suppresses the rule there. Options are also read from {CONFIG},
or from [tool.sdy.lint] in {PROJECT}, in the working directory.
"""

_EXAMPLES = """\
examples:
  sdy-lint step.mlir
  sdy-lint step.mlir --format github --baseline lint.json
  sdy-lint step.mlir --write-baseline lint.json         records all findings, so that later only new ones are reported
  sdy-lint --explain conflict-by-order
"""

_HELP = {
    "large": "minimum cost of a finding, in bytes per device",
    "replicated": "minimum cost of a replicated-tensor finding, in bytes per device",
    "small": "size below which a collective is small",
    "many": "minimum number of small collectives of one line",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-lint", _DESCRIPTION, _EXAMPLES, no="there are findings")
    parser.add_argument("file", metavar="FILE", nargs="?", help="a program; - is standard input")
    parser.add_argument("--format", choices=FORMATS, default="text", help="output format (default: text)")
    parser.add_argument("--select", metavar="RULE,...", type=_names, help="report only these rules")
    parser.add_argument("--ignore", metavar="RULE,...", type=_names, help="do not report these rules")
    for name, default in _defaults().items():
        parser.add_argument(f"--{name}", metavar="SIZE", help=f"{_HELP[name]} (default: {default})")
    parser.add_argument("--config", metavar="FILE.toml", help="read options from this file, not the working directory")
    parser.add_argument("--baseline", metavar="FILE.json", help="do not report the findings recorded in this file")
    parser.add_argument("--write-baseline", metavar="FILE.json", help="record the findings instead of reporting them")
    add_under_option(parser)
    parser.add_argument("--explain", metavar="RULE", help="show the documentation of a rule")
    parser.add_argument("--list", action="store_true", help="list the rules")
    arguments = parser.parse_args(argv)
    if (arguments.file is None) == (arguments.explain is None and not arguments.list):
        parser.error("give either a FILE, or --explain or --list")
    return guarded(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Execute the command line.

    Raises:
        DiagnosticError: The command line or a file is invalid.
    """
    if arguments.list:
        sys.stdout.write("\n".join(columns([[rule.name, rule.summary] for rule in RULES.values()])) + "\n")
        return 0
    if arguments.explain is not None:
        check_names([arguments.explain])
        sys.stdout.write(_page(RULES[arguments.explain]))
        return 0
    check_writable(arguments.write_baseline)
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    options = _options(arguments)
    baseline = Baseline.read(read(arguments.baseline)) if arguments.baseline else Baseline({})
    source = read(arguments.file)
    module = parse(source.text, source.name)
    if arguments.under:
        check_enough(module)
        enough_devices(module)
    findings = lint(module, lint_options=options, under=arguments.under)
    status = REFUSED if findings.failed else 0
    if arguments.write_baseline:
        write(arguments.write_baseline, Baseline.of(findings).text)
        return status
    new = baseline.new(findings)
    sys.stdout.write(FORMATS[arguments.format](new))
    return status or int(bool(new))


def _options(arguments: argparse.Namespace) -> LintOptions:
    """Merge the options of the configuration file with those of the command line, which take precedence."""
    from_file = options_in(read(arguments.config)) if arguments.config else options_of_directory(Path())
    thresholds = {
        name: threshold(f"--{name}", value, None)
        for name in _defaults()
        if (value := getattr(arguments, name)) is not None
    }
    return replace(
        from_file,
        select=from_file.select if arguments.select is None else arguments.select,
        ignore=from_file.ignore if arguments.ignore is None else arguments.ignore,
        thresholds=replace(from_file.thresholds, **thresholds),
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _defaults() -> dict[str, str]:
    """Return the default of each threshold, formatted."""
    values = {field.name: getattr(Thresholds(), field.name) for field in fields(Thresholds)}
    return {name: str(value) if name == "many" else format_bytes(value) for name, value in values.items()}


def _page(rule: Rule) -> str:
    return f"{rule.name}\n\n{rule.text}\n"


if __name__ == "__main__":
    sys.exit(main())
