"""The report's avoidable costs: the findings of lint, with the line to write for each."""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from sdy.formatting import escape_line, format_bytes
from sdy.ir.walking import operations
from sdy.passes.account.lint.findings import Finding, Findings, cost_text
from sdy.passes.account.lint.lint import lint_program
from sdy.passes.account.lint.options import LintOptions
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.account.lint.written import Trials
from sdy.passes.account.report.numbering import Json, Numbers

MOST_OPERATIONS = 20_000
"""Size of a program above which a report tries no fixes: each takes as long as a third of the report."""


def findings_of(linted: LintedProgram) -> Findings:
    """Return the findings of lint in a program; in a large one without trials of fixes."""
    return lint_program(linted, LintOptions(), Trials(0, linted.hardware) if is_large(linted.module) else None)


def is_large(module: ModuleOp) -> bool:
    """Return whether a module has more than `MOST_OPERATIONS` operations."""
    return len(operations(module)) > MOST_OPERATIONS


def avoidable(found: Findings) -> Iterator[str]:
    """Yield the sentences of the headline on the findings, and on the costliest one."""
    if not found:
        return
    number = "1 finding" if len(found) == 1 else f"{len(found):,} findings"
    cost = cost_text(found.received, found.held)
    yield f"Avoidable: {cost} than necessary ({number})." if cost else f"Avoidable: {number}."
    first, *others = found
    where = f" ({first.where.short})" if first.where else ""
    yield escape_line(f"{'The costliest' if others else 'Cause'}: {first.what}{where}.")
    if first.cure:
        yield escape_line(f"Fix: {first.cure}.")


def findings_as_json(found: Findings, numbers: Numbers) -> Json:
    """Serialize the findings, and the text that stands for them if there are none."""
    below = found.below.in_command if found.below else f"above {format_bytes(Thresholds().large)}"
    return {
        "headline": [*avoidable(found)],
        "items": [_as_json(each, numbers) for each in found],
        "none": escape_line(f"No findings {below}" + (" of sdy-lint." if found.below else ".")),
    }


def _as_json(finding: Finding, numbers: Numbers) -> Json:
    return {
        "rule": finding.rule,
        "message": escape_line(finding.message),
        "what": escape_line(finding.what),
        "fix": escape_line(finding.cure),
        "compared": escape_line(finding.compared),
        "received": finding.received or finding.avoided,
        "held": finding.held,
        "like": finding.like,
        "folded": finding.folded,
        "place": numbers.place(finding.where),
        "notes": [(escape_line(note.message), numbers.place(note.location)) for note in finding.reasons],
    }
