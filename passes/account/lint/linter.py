"""Find costly patterns: the matches of lint rules, those that one fix removes folded into one finding."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation

from sdy.axes import AxisRef
from sdy.diagnostics import Diagnostic, Severity, capture
from sdy.formatting import format_bytes
from sdy.passes.account.causes import traced_program
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.catalog import Rule
from sdy.passes.account.lint.edits import Cure, Edit, ShardArgument, value_dims
from sdy.passes.account.lint.findings import Below, Finding, Findings
from sdy.passes.account.lint.fix_choice import best_cure, costs_before
from sdy.passes.account.lint.matches import Match, matches
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.written import Costs, Trials

_LEAST_UNCURED = 0.05
"""The smallest part of the bytes of a step for which a match is a finding though no fix helps."""

_MOST_HELPED = 0.5
"""The part of the bytes of a match that a fix saves, which is then no reason to report it without a fix."""

_NEXT = 2.0
"""The factor of the share of a rule that a fix saves in a program with another fix: it may only suit that one."""

_LEAST_BELOW = 1 / 64
"""The smallest part of the bytes of a step that a match below the threshold is mentioned for."""


def findings(
    program: LintedProgram, rules: Sequence[Rule], is_wanted: Callable[[Match], bool], trials: Trials
) -> Findings:
    """Return the findings of `rules`, the costliest first: of the last rules only if there are no others."""
    found = _Search(program, [each for each in rules if not each.is_last], is_wanted, trials).run()
    last = [each for each in rules if each.is_last]
    return found if found or not last else replace(_Search(program, last, is_wanted, trials).run(), below=found.below)


@dataclass(frozen=True)
class _Fixed:
    """A finding with its fix, and the costs of a step before the fix."""

    finding: Finding
    cure: Cure
    before: Costs


class _Search:
    """The search for findings: the program with the fixes so far, and the matches that are left in it.

    The match whose fix saves most is a finding, together with all matches that the fix removes; the most specific of
    those that concern the same arguments names the cause. The search then goes on in the fixed program, among the
    collectives that no reported match explains, until no match is left that a fix helps.
    """

    def __init__(
        self, program: LintedProgram, rules: Sequence[Rule], is_wanted: Callable[[Match], bool], trials: Trials
    ) -> None:
        self._program, self._rules, self._is_wanted, self._trials = program, rules, is_wanted, trials
        self._original, self._failures = program, trials.failures
        self._every = matches(program, rules, self._failures)
        self._left = self._large()
        self._explained = {each.key: frozenset(each.collectives) for each in self._left}
        """The collectives of the original program that each match explains."""
        self._reported: set[object] = set()
        """The keys of the matches that are findings."""
        self._fixed: list[_Fixed] = []

    def run(self) -> Findings:
        """Return the findings, the costliest first."""
        while self._report_best():
            pass
        found = [*self._with_remains(), *self._without_fix()]
        found.sort(key=lambda each: -each.cost)
        return Findings(found, _below(self._program, self._every, self._is_wanted))

    @cached_property
    def _step(self) -> Costs:
        """The costs of a step without any fix."""
        return costs_before(self._original, self._trials)

    def _large(self) -> list[Match]:
        return _wanted([each for each in self._every if each.is_large], self._is_wanted)

    def _report_best(self) -> bool:
        """Fix the match that a fix helps most, and return whether there was one."""
        measured = [each for each in self._left if not each.worst.avoided]
        if not measured:
            return False
        share = _NEXT if self._fixed else 1.0
        best = best_cure(self._program, measured, self._trials, self._step, share)
        if best is None:
            return False
        match, cure, before, after = best
        cured = _cured(self._program, cure)
        cure = _named(self._program, cured, cure, after, self._trials)
        self._program, self._every = cured, matches(cured, self._rules, self._failures)
        remaining = [each for each in self._large() if each.key in self._explained]
        kept = {each.key for each in remaining} - {match.key}
        gone = [each for each in self._left if each.key not in kept]
        removed = [each for each in gone if each is match or each.rule.name not in self._failures.rules]
        headline = next(each for each in removed if each is match or each.has_fix_of_arguments(cure))
        self._report(match, headline, removed, cure, before)
        self._reported |= {headline.key, match.key}
        explained = {op for each in self._every if each.key in self._reported for op in each.collectives}
        self._left = [each for each in remaining if each.key not in self._reported and not each.is_within(explained)]
        return True

    def _report(self, match: Match, headline: Match, removed: Sequence[Match], cure: Cure, before: Costs) -> None:
        """Add the finding of a match that a fix removes with others, or join it with one that has its cause."""
        after = self._program.costs
        folded = [each for each in removed if each is not headline and not each.needs_cure]
        received, held = max(before.received - after.received, 0.0), max(before.memory - after.memory, 0)
        is_of_time = match.rule.is_of_time and max(received, held) < self._original.thresholds.large
        finding = replace(
            headline.finding,
            cure=cure.text,
            edits=_edits(cure),
            compared=after.compared(before),
            received=received,
            held=max(held, _argument_bytes(match, before, after)),
            seconds=max(before.seconds - after.seconds, 0.0) if is_of_time else 0.0,
            removes=tuple(each.finding for each in folded),
            collectives=_removed(self._original.collectives, self._program).intersection(
                op for each in (headline, match, *folded) for op in self._explained[each.key]
            ),
        )
        for number, each in enumerate(self._fixed):
            shards_the_same = each.cure.arguments == cure.arguments != frozenset()
            is_of_axis = self._is_misused(each.cure, headline)
            if shards_the_same or is_of_axis or not each.finding.collectives.isdisjoint(finding.collectives):
                both = each.cure.then(cure)
                joined = _joined(each.finding, finding, both, after.compared(each.before))
                self._fixed[number] = _Fixed(joined, both, each.before)
                return
        self._fixed.append(_Fixed(finding, cure, before))

    def _concerns(self, cure: Cure, match: Match) -> bool:
        """Return whether a fix shards the arguments of a match, or others over the axes that shard those."""
        return not cure.arguments.isdisjoint(match.arguments) or self._is_misused(cure, match)

    def _is_misused(self, cure: Cure, match: Match) -> bool:
        """Return whether a fix shards other arguments over axes that shard those of a match: it was used for these."""
        gained = {axis.name for edit in cure.edits if isinstance(edit, ShardArgument) for axis in self._gained(edit)}
        return bool(match.arguments) and not gained.isdisjoint(match.axes)

    def _gained(self, edit: ShardArgument) -> Iterator[AxisRef]:
        """Yield the axes that an edit shards an argument over which do not shard it."""
        before = {axis for dim in value_dims(self._original.main.args[edit.index]) for axis in dim}
        yield from (axis for dim in edit.dims or () for axis in dim if axis not in before)

    def _with_remains(self) -> Iterator[Finding]:
        """Yield the findings with fixes, each with what is left of the arguments and the axes of its fix."""
        for number, each in enumerate(self._fixed):
            remains = tuple(left for of, left in self._unfixed if of == number)
            yield replace(each.finding, remains=(*each.finding.remains, *remains)) if remains else each.finding

    def _without_fix(self) -> Iterator[Finding]:
        """Yield the findings that no fix helps, without those that a fix concerns."""
        return (left for of, left in self._unfixed if of is None)

    @cached_property
    def _unfixed(self) -> Sequence[tuple[int | None, Finding]]:
        """The findings of the matches that no fix helps, each with the number of the fix that concerns them."""
        found: list[tuple[int | None, Finding]] = []
        explained: set[Operation] = set()
        for each in self._left:
            if each.rule.is_of_number and each.is_within(explained):
                continue
            finding = _avoiding(each, self._program, self._trials)
            is_evident = not each.needs_cure and each.is_share(self._step, _LEAST_UNCURED)
            if finding is None and is_evident and not _is_helped(each, self._trials):
                finding = _uncured(each, self._trials)
            if finding is None:
                continue
            cures = [fixed.cure for fixed in self._fixed]
            of = next((at for at, cure in enumerate(cures) if self._concerns(cure, each)), None)
            if of is None:
                finding = replace(finding, collectives=self._explained[each.key])
                explained |= finding.collectives
            found.append((of, finding))
        return found


def _joined(first: Finding, second: Finding, cure: Cure, compared: str) -> Finding:
    """Return one finding for two that explain the same collective, or whose fixes shard the same arguments."""
    return replace(
        first,
        cure=cure.text,
        edits=_edits(cure),
        compared=compared,
        received=first.received + second.received,
        held=first.held + second.held,
        seconds=first.seconds and second.seconds and first.seconds + second.seconds,
        removes=(*first.removes, replace(second, removes=()), *second.removes),
        collectives=first.collectives | second.collectives,
    )


def _edits(cure: Cure) -> tuple[str, ...]:
    return tuple(dict.fromkeys(edit.text for edit in cure.edits))


def _argument_bytes(match: Match, before: Costs, after: Costs) -> int:
    """Return the memory of arguments that a fix saves, for rules that count it."""
    return max(before.arguments - after.arguments, 0) if match.rule.saves_arguments else 0


def _removed(before: Sequence[Collective], cured: LintedProgram) -> frozenset[Operation]:
    """Return the collectives that a fixed program does not have."""

    def key(collective: Collective) -> object:
        return collective.kind, collective.axes, collective.op.results[0].type, collective.place

    kept = {*map(key, cured.collectives)}
    return frozenset(each.op for each in before if key(each) not in kept)


def _avoiding(match: Match, program: LintedProgram, trials: Trials) -> Finding | None:
    """Return the finding of a match that costs only as `jax.jit` compiles it, with a fix that removes it, or None."""
    if program.written is None:
        return None
    for cure in match.worst.cures if match.worst.avoided else ():
        before, costs = costs_before(program, trials), trials.costs(program.written, cure)
        if costs is None or costs.relative(before) > before.relative(before):
            continue
        left = matches(_cured(program, cure), [match.rule], trials.failures)
        if match.key not in {each.key for each in left} and match.rule.name not in trials.failures.rules:
            saved = f"with it, a device receives {format_bytes(match.finding.avoided)} less as jax.jit compiles it"
            received = max(before.received - costs.received, 0.0)
            here = f"; {costs.compared(before)}" if received else ""
            edits = _edits(cure)
            return replace(match.finding, cure=cure.text, edits=edits, compared=saved + here, received=received)
    return None


def _is_helped(match: Match, trials: Trials) -> bool:
    """Return whether a fix saves most of the bytes of a match, and time, but less than the rule demands of a step."""
    written, before = match.program.written, costs_before(match.program, trials)
    is_demanding = match.rule.fix.time_share is not None
    tried = (trials.known(written, cure) for cure in match.cures) if written and is_demanding else ()
    return any(
        costs is not None
        and costs.seconds < before.seconds
        and before.received - costs.received > _MOST_HELPED * match.received > 0
        for costs in tried
    )


def _uncured(match: Match, trials: Trials) -> Finding:
    """Return the finding of a match that none of the fixes helps, except maybe those that were skipped."""
    finding = replace(match.finding, cure=match.worst.cure) if match.rule.is_of_number else match.finding
    if not match.worst.cures or match.program.written is None:
        return finding
    tried = [] if trials.is_empty else ["no other layout that was tried costs less"]
    untried = [f"{trials.skipped:,} other layouts were not tried"] if trials.skipped else []
    note = Diagnostic(Severity.NOTE, finding.where, "; ".join([*tried, *untried]))
    return replace(finding, reasons=(*finding.reasons, note))


def _wanted(found: Sequence[Match], is_wanted: Callable[[Match], bool]) -> list[Match]:
    """Return the wanted matches, without those whose collectives another match explains better.

    The other match is unwanted, or its fix cannot be tried, since it changes more than layouts.
    """
    wanted = [each for each in found if is_wanted(each)]
    unwanted = [each for each in found if each not in wanted and not each.rule.needs_cure]
    allowed = {op for each in unwanted for op in each.collectives}
    rewritten = {op for each in wanted if not each.needs_cure and not each.worst.cures for op in each.collectives}
    return [each for each in wanted if not each.overlaps(allowed | rewritten if each.needs_cure else allowed)]


def _below(program: LintedProgram, every: Sequence[Match], is_wanted: Callable[[Match], bool]) -> Below | None:
    """Return the wanted matches below the threshold that are a part of the bytes of a step."""
    least = max(_LEAST_BELOW * max(program.costs.received, program.costs.memory), 1)
    sizes = [
        each.size
        for each in every
        if each.rule.least == "large" and not each.rule.needs_cure and not each.is_large and each.size >= least
        if is_wanted(each)
    ]
    if not sizes:
        return None
    large = format_bytes(2 ** (int(min(sizes)).bit_length() - 1)).replace(" ", "").removesuffix("iB")
    return Below(len(sizes), program.thresholds.large, large.removesuffix("bytes"))


def _cured(program: LintedProgram, cure: Cure) -> LintedProgram:
    """Return the propagated and partitioned program with a fix."""
    written = program.written and program.written.with_cure(cure)
    assert written is not None
    with capture():
        traced = traced_program(written.layouts_of_trial())
    return LintedProgram(traced, program.thresholds, written, program.hardware)


def _named(program: LintedProgram, cured: LintedProgram, cure: Cure, after: Costs, trials: Trials) -> Cure:
    """Return the fix with the layouts that it leaves to propagation named, if that costs no more."""
    assert program.written is not None
    named = Cure(tuple(_with_name(edit, cured) for edit in cure.edits))
    costs = trials.costs(program.written, named) if named != cure else None
    return named if costs and costs.relative(after) <= after.relative(after) else cure


def _with_name(edit: Edit, cured: LintedProgram) -> Edit:
    if isinstance(edit, ShardArgument) and edit.dims is None:
        argument = cured.main.args[edit.index]
        return replace(edit, dims=value_dims(argument))
    return edit
