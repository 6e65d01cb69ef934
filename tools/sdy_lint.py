"""sdy-lint: what will cost in a program, found before a device is touched."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from sdy.byte_sizes import shown_bytes
from sdy.passes.account.lint.baseline import Baseline
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.config import CONFIG, PROJECT, options_in, options_of_directory, threshold
from sdy.passes.account.lint.formats import FORMATS
from sdy.passes.account.lint.lint import lint
from sdy.passes.account.lint.options import LintOptions, check_names
from sdy.passes.account.lint.rule import Rule
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.common.columns import columns
from sdy.passes.driver import read, write
from sdy.text import parse
from sdy.tools.arguments import tool_parser
from sdy.tools.command import guarded
from sdy.tools.custom_call_rules import take_rules
from sdy.tools.imports import import_modules

_DESCRIPTION = f"""\
Tell what will cost in a StableHLO program, which is propagated if it has not been: each finding with its source line,
the reason, what it costs a device in a step, and what to write instead. The exit status is 0 where nothing was found,
1 where anything was, and 2 where the command line or a file is wrong. A line with the comment '# sdy: allow(RULE)' in
Python, or '// sdy: allow(RULE)' in MLIR, or below one, may do what that rule finds. Options are also read from
{CONFIG}, or from [tool.sdy.lint] in {PROJECT}, of the working directory.
"""

_EXAMPLES = """\
examples:
  sdy-lint step.mlir
  sdy-lint step.mlir --format github --baseline lint.json
  sdy-lint step.mlir --write-baseline lint.json         keeps what there is, so that only what is new is told
  sdy-lint --explain conflict-by-order
"""

_HELP = {
    "large": "bytes of a device from which on something is told",
    "replicated": "the same for what devices hold alike",
    "small": "a collective of fewer bytes is a small one",
    "many": "so many small collectives are many",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-lint", _DESCRIPTION, _EXAMPLES, no="there are findings")
    parser.add_argument("file", metavar="FILE", nargs="?", help="a program; - is standard input")
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="how findings are written, by default as text"
    )
    parser.add_argument("--select", metavar="RULE,...", type=_names, help="ask these rules alone")
    parser.add_argument("--ignore", metavar="RULE,...", type=_names, help="do not ask these rules")
    for name, default in _defaults().items():
        parser.add_argument(f"--{name}", metavar="SIZE", help=f"{_HELP[name]}, by default {default}")
    parser.add_argument("--config", metavar="FILE.toml", help="read options from there, and not the working directory")
    parser.add_argument("--baseline", metavar="FILE.json", help="do not tell what is in there")
    parser.add_argument(
        "--write-baseline", metavar="FILE.json", help="instead of telling it, write what is found there"
    )
    parser.add_argument("--explain", metavar="RULE", help="show the page of a rule")
    parser.add_argument("--list", action="store_true", help="list the rules")
    arguments = parser.parse_args(argv)
    if (arguments.file is None) == (arguments.explain is None and not arguments.list):
        parser.error("give either a FILE, or --explain or --list")
    return guarded(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Do what the command line asks for. Raises DiagnosticError where it, or a file, is wrong."""
    if arguments.list:
        sys.stdout.write("\n".join(columns([[rule.name, rule.summary] for rule in RULES.values()])) + "\n")
        return 0
    if arguments.explain is not None:
        check_names([arguments.explain])
        sys.stdout.write(_page(RULES[arguments.explain]))
        return 0
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    options = _options(arguments)
    kept = Baseline.read(read(arguments.baseline)) if arguments.baseline else Baseline({})
    source = read(arguments.file)
    found = lint(parse(source.text, source.name), lint_options=options)
    if arguments.write_baseline:
        write(arguments.write_baseline, Baseline.of(found).text)
        return 0
    new = kept.new(found)
    sys.stdout.write(FORMATS[arguments.format](new))
    return int(bool(new))


def _options(arguments: argparse.Namespace) -> LintOptions:
    """The options of a file, and before them those of the command line."""
    given = options_in(read(arguments.config)) if arguments.config else options_of_directory(Path())
    thresholds = {
        name: threshold(f"--{name}", value, None)
        for name in _defaults()
        if (value := getattr(arguments, name)) is not None
    }
    return replace(
        given,
        select=given.select if arguments.select is None else arguments.select,
        ignore=given.ignore if arguments.ignore is None else arguments.ignore,
        thresholds=replace(given.thresholds, **thresholds),
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _defaults() -> dict[str, str]:
    """The thresholds, each with what it is without an option."""
    values = {field.name: getattr(Thresholds(), field.name) for field in fields(Thresholds)}
    return {name: str(value) if name == "many" else shown_bytes(value) for name, value in values.items()}


def _page(rule: Rule) -> str:
    return f"{rule.name}\n\n{rule.text}\n"


if __name__ == "__main__":
    sys.exit(main())
