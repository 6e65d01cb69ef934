"""`sdy.lint`: what will cost in a program, found before a device is touched."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sdy.passes.account.causes import traced_program
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.finding import Finding
from sdy.passes.account.lint.findings import Findings
from sdy.passes.account.lint.linter import findings
from sdy.passes.account.lint.options import LintOptions
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.sources import Sources
from sdy.passes.account.partitioned_program import Program, propagated_program


def lint(program: Program, *args: Any, lint_options: LintOptions | None = None, **kwargs: Any) -> Findings:
    """What will cost in a program, each with its source line, the reason, and what to write instead.

        findings = sdy.lint(step, params, batch)
        print(findings)
        assert not findings

    `program` is what `sdy.account` takes, with its arguments: a function, what `step.lower(...)` returned, or a module.
    What has not been propagated is, as a copy; nothing is run. A line with the comment `# sdy: allow(RULE)`, or below
    one, may do what that rule finds. Raises TypeError for arguments of what has its arguments already, and
    DiagnosticError where the program cannot be partitioned, or a comment names a rule that there is not.
    """
    options = lint_options or LintOptions()
    traced = traced_program(propagated_program(program, *args, **kwargs))
    looked_at = LintedProgram(traced, options.thresholds)
    sources = Sources()
    # All rules are asked, as what one has told another does not tell again.
    told = findings(looked_at, RULES.values())
    return Findings(sorted(_kept(told, options, sources), key=lambda finding: -finding.cost))


def _kept(told: Iterator[Finding], options: LintOptions, sources: Sources) -> Iterator[Finding]:
    names = {rule.name for rule in options.rules}
    for finding in told:
        if finding.rule in names and finding.rule not in _allowed(finding, options, sources):
            for note in finding.diagnostic.notes:
                if note.location is not None:
                    sources.lines(note.location.filename)
            yield finding


def _allowed(finding: Finding, options: LintOptions, sources: Sources) -> set[str]:
    """The rules that are allowed at the line of a finding, where that is called, or in the file."""
    places = [place for place in (finding.where, finding.caller) if place is not None]
    by_comment = {name for place in places for name in sources.allowed(place)}
    return by_comment | {name for place in places[:1] for name in _allowed_in(place.filename, options)}


def _allowed_in(filename: str, options: LintOptions) -> Iterator[str]:
    """The rules that are allowed in a file, by its name as it is or from the working directory."""
    path = Path(filename)
    names = {filename, path.name}
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        names.add(path.relative_to(Path.cwd()).as_posix())
    for pattern, rules in options.allow.items():
        if any(fnmatchcase(name, pattern) for name in names):
            yield from rules
