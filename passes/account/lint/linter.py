"""Runs lint rules on a program, groups equal matches, and drops groups below the threshold."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from xdsl.ir import Operation

from sdy.diagnostics import Diagnostic, Location, Severity
from sdy.passes.account.lint.catalog import Rule
from sdy.passes.account.lint.findings import Finding, GivenBy, Reason, Suspicion, without_numbers
from sdy.passes.account.lint.program import LintedProgram

_MOST_CHAINS = 4
"""Number of axes of a tensor whose origin is reported."""


def findings(program: LintedProgram, rules: Iterable[Rule]) -> Iterator[Finding]:
    """Yield the findings of `rules` in a program; each collective is reported by the first rule that explains it."""
    explained: set[Operation] = set()
    for rule in rules:
        least = getattr(program.thresholds, rule.least)
        kinds: dict[object, list[Suspicion]] = {}
        new = [each for each in rule.check(program) if not each.collectives or explained.isdisjoint(each.collectives)]
        for suspicion in new:
            kinds.setdefault(_kind(suspicion, program), []).append(suspicion)
            explained.update(suspicion.collectives)
        for alike in kinds.values():
            if sum(map(rule.size, alike)) >= least:
                yield _finding(rule, alike, program)


def _kind(suspicion: Suspicion, program: LintedProgram) -> object:
    """Return the grouping key of matches: the problem without indices, and its line if the source is Python.

    A line of Python can stand for many operations, since a loop traces it repeatedly; a line of MLIR is one operation.
    """
    where = program.place(suspicion.at)
    line = (where.filename, where.line) if where and where.filename.endswith(".py") else None
    return without_numbers(suspicion.what), line


def _finding(rule: Rule, alike: Sequence[Suspicion], program: LintedProgram) -> Finding:
    worst = max(alike, key=lambda each: each.cost)
    where = program.place(worst.at)
    return Finding(
        rule.name,
        where,
        program.places.caller(worst.at),
        worst.what,
        worst.cure,
        tuple(note for reason in worst.reasons for note in _notes(reason, where, program)),
        sum(each.received for each in alike),
        sum(each.held for each in alike),
        sum(each.times for each in alike) - worst.times,
        rule.severity,
    )


def _notes(reason: Reason, where: Location | None, program: LintedProgram) -> Iterator[Diagnostic]:
    match reason:
        case GivenBy():
            yield from _origins(reason, program)
        case (place, text):
            yield Diagnostic(Severity.NOTE, place or where, text)


def _origins(reason: GivenBy, program: LintedProgram) -> Iterator[Diagnostic]:
    value = reason.tensor
    wanted = (
        chain
        for chain in program.chains(value)
        if not reason.axes or any(chain.axis.overlaps(axis) for axis in reason.axes)
    )
    chains = list(wanted)[:_MOST_CHAINS]
    for (origin, hops), group in groupby(chains, key=lambda chain: (chain.origin, len(chain.hops))):
        axes = " and ".join(f"axis {chain.axis} in dimension {chain.dimension}" for chain in group)
        distance = f", {hops} operations away" if hops > 1 else ""
        text = f"{program.called(value)} has {axes}, from the sharding {origin.text}{distance}"
        yield Diagnostic(Severity.NOTE, origin.where or program.place(value), text)
