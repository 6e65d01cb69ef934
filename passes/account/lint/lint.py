"""`sdy.lint`: static analysis for costly sharding patterns, without devices."""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sdy.passes.account.causes import traced_program
from sdy.passes.account.keywords import check_keywords
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.findings import Finding, Findings
from sdy.passes.account.lint.linter import findings
from sdy.passes.account.lint.matches import Match
from sdy.passes.account.lint.options import OPTIONS, LintOptions
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.sources import Sources
from sdy.passes.account.lint.written import Trials, written_program
from sdy.passes.account.partitioned_program import Program, program_of
from sdy.passes.account.unsharded import unsharded_hint


def lint(
    program: Program, *args: Any, lint_options: LintOptions | None = None, under: str | None = None, **kwargs: Any
) -> Findings:
    """Find costly sharding patterns in a program.

        findings = sdy.lint(step, params, batch)
        print(findings)
        assert not findings

    Each finding has a source line, the cost per device, the reason and a suggested fix. A program that has not been
    propagated is propagated on a copy; nothing runs on devices. The comment `# sdy: allow(RULE)`, at the end of a line
    or on the line above, suppresses the rule there. A warning names a rule that fails, whose findings are missing.

    Args:
        program: A function (of `sdy.jit` or any other), the result of `step.lower(...)`, a program of `sdy.compiler`, a
            module, or a file of one, such as `"step.mlir"`.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        lint_options: The rules to run and their thresholds; all rules by default.
        under: "jax.jit" adds the costs of the program as XLA's partitioner compiles it, beside those of sdy; the
            findings are of the program as sdy partitions it.
        **kwargs: The keyword arguments of a function.

    Returns:
        The findings, the costliest first; false if there are none.

    Raises:
        ValueError: `under` is another text.
        TypeError: Arguments are given for a program that is not a function, or a function does not take a keyword.
        DiagnosticError: The program cannot be partitioned, or a comment names an unknown rule.
    """
    options = lint_options or LintOptions()
    check_keywords(lint, program, kwargs, OPTIONS)
    stage = program_of(program, *args, **kwargs)
    layouts, written = written_program(stage)
    traced = traced_program(layouts)
    found = lint_program(LintedProgram(traced, options.thresholds, written), options)
    found = replace(found, hint=unsharded_hint(traced.module))
    if under is None:
        return found
    from sdy.passes.account.account import account

    return replace(found, costs=account(stage, under=under))


def lint_program(linted: LintedProgram, options: LintOptions, trials: Trials | None = None) -> Findings:
    """Return the findings in a propagated and partitioned program, the costliest first.

    Args:
        linted: The program.
        options: The rules and thresholds.
        trials: The budget of fixes to try; by default that of the program's size.

    Raises:
        DiagnosticError: A comment names an unknown rule.
    """
    sources, names = Sources(), {rule.name for rule in options.rules}

    def is_wanted(match: Match) -> bool:
        return match.rule.name in names and match.rule.name not in _allowed(match.finding, options, sources)

    # Run all rules, also those that are not selected: a collective that one rule explains is not reported by another.
    trials = Trials.of(linted.written, linted.hardware) if trials is None else trials
    found = findings(linted, [*RULES.values()], is_wanted, trials)
    found = replace(found, failed=trials.failures.report(names))
    for finding in found:
        for note in finding.diagnostic.notes:
            if note.location is not None:
                sources.lines(note.location.filename)
    return found


def _allowed(finding: Finding, options: LintOptions, sources: Sources) -> set[str]:
    """Return the rules that are suppressed at the line of a finding, at its call site, or in its file."""
    places = [place for place in (finding.where, finding.caller) if place is not None]
    by_comment = {name for place in places for name in sources.allowed(place)}
    return by_comment | {name for place in places[:1] for name in _allowed_in(place.filename, options)}


def _allowed_in(filename: str, options: LintOptions) -> Iterator[str]:
    """Yield the rules that the options suppress in a file; patterns match its name, full or relative path."""
    path = Path(filename)
    names = {filename, path.name}
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        names.add(path.relative_to(Path.cwd()).as_posix())
    for pattern, rules in options.allow.items():
        if any(fnmatchcase(name, pattern) for name in names):
            yield from rules
