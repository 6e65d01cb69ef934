"""Run lint rules on a program, group equal matches, and fold the groups that one fix removes into one finding."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from xdsl.ir import Operation

from sdy.diagnostics import Diagnostic, Location, Severity, capture
from sdy.dialect.shardings import get_sharding
from sdy.formatting import format_bytes
from sdy.passes.account.causes import traced_program
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.catalog import Rule
from sdy.passes.account.lint.cures import Cure
from sdy.passes.account.lint.edits import Edit, ShardArgument, dims_of
from sdy.passes.account.lint.findings import Finding, Findings, GivenBy, Reason, Suspicion, without_numbers
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.written import Costs, Trials

_MOST_CHAINS = 4
"""Number of axes of a tensor whose origin is reported."""

_MOST_TRIES = 12
"""Number of fixes that are tried for one match."""


@dataclass(frozen=True, eq=False)
class Match:
    """Equal matches of a rule."""

    rule: Rule
    program: LintedProgram
    alike: Sequence[Suspicion]
    key: object

    @cached_property
    def size(self) -> float:
        """The quantity that is compared with the threshold of the rule."""
        return sum(map(self.rule.size, self.alike))

    @property
    def is_large(self) -> bool:
        """Return whether the matches reach the threshold of the rule."""
        return self.size >= getattr(self.program.thresholds, self.rule.least)

    @cached_property
    def collectives(self) -> set[Operation]:
        """The collectives that the matches explain."""
        return {op for each in self.alike for op in each.collectives}

    def overlaps(self, collectives: Set[Operation]) -> bool:
        """Return whether the matches explain one of `collectives`."""
        return not self.collectives.isdisjoint(collectives)

    @property
    def needs_cure(self) -> bool:
        """Return whether it is a finding only where a fix that was tried helps."""
        return self.rule.needs_cure or (self.worst.needs_cure and self.program.written is not None)

    @property
    def worst(self) -> Suspicion:
        """The costliest one."""
        return max(self.alike, key=lambda each: each.cost)

    def is_share(self, costs: Costs, share: float) -> bool:
        """Return whether the cost is at least this part of the bytes of a step, or is not one of layouts."""
        received, held = sum(each.received for each in self.alike), sum(each.held for each in self.alike)
        is_measured = bool(self.worst.cures) and not self.rule.is_unmeasured
        return not is_measured or received >= share * costs.received > 0 or held >= share * costs.memory

    def is_reduced(self, before: Costs, after: Costs, part: float) -> bool:
        """Return whether a fix saves this part of the cost."""
        saved = max(before.received - after.received, 0) + max(before.memory - after.memory, 0)
        is_faster = before.seconds - after.seconds >= _LEAST_FASTER * before.seconds
        return (part < _SOLVED and (self.rule.is_unmeasured or is_faster)) or saved >= part * self.worst.cost

    def finding(self) -> Finding:
        """Return the finding; one whose fixes can be tried has no suggested fix."""
        worst, program = self.worst, self.program
        where = program.place(worst.at)
        caller, *outer = program.places.callers(worst.at) or [None]
        return Finding(
            self.rule.name,
            where,
            caller,
            worst.what,
            "" if worst.cures and program.written else worst.cure,
            (
                *(Diagnostic(Severity.NOTE, each, "called from here") for each in outer),
                *_library_notes(program, worst),
                *(note for reason in worst.reasons for note in _notes(reason, where, program)),
            ),
            sum(each.received for each in self.alike),
            sum(each.held for each in self.alike),
            sum(each.avoided for each in self.alike),
            sum(each.times for each in self.alike) - worst.times,
            self.rule.severity,
        )


def matches(program: LintedProgram, rules: Iterable[Rule]) -> list[Match]:
    """Return the matches of `rules`; a collective is explained by the first rule that needs no fix to explain it."""
    explained: set[Operation] = set()
    found: list[Match] = []
    for rule in rules:
        kinds: dict[object, list[Suspicion]] = {}
        new = [each for each in rule.check(program) if rule.needs_cure or explained.isdisjoint(each.collectives)]
        for suspicion in new:
            kinds.setdefault(_kind(suspicion, program), []).append(suspicion)
            if not rule.needs_cure:
                explained.update(suspicion.collectives)
        found += [Match(rule, program, alike, (rule.name, kind)) for kind, alike in kinds.items()]
    return found


def findings(program: LintedProgram, rules: Sequence[Rule], is_wanted: Callable[[Match], bool]) -> Findings:
    """Return the findings of `rules` in a program, the costliest first.

    The match whose fix saves most is a finding, together with all matches that the fix removes. The search then goes on
    in the fixed program, until no match is left that a fix helps.
    """
    trials = Trials.of(program.written)
    every = matches(program, rules)
    left = _wanted([each for each in every if each.is_large], is_wanted)
    found: list[Finding] = []
    original, known = program.collectives, {each.key: frozenset(each.collectives) for each in left}
    while (best := _best_cure(program, left, trials)) is not None:
        match, cure, before, after = best
        cured = _cured(program, cure)
        cure = _named(program, cured, cure, after, trials)
        after = cured.costs
        program = cured
        every = matches(program, rules)
        remaining = _wanted([each for each in every if each.is_large and each.key in known], is_wanted)
        keys = {each.key for each in remaining} | {match.key}
        folded = [each for each in left if each.key not in keys and not each.needs_cure]
        finding = replace(
            match.finding(),
            cure=cure.text,
            compared=after.compared(before),
            received=max(before.received - after.received, 0.0),
            held=max(before.memory - after.memory, 0),
            folded=len(folded),
            collectives=_removed(original, program).intersection(
                op for each in (match, *folded) for op in known[each.key]
            ),
        )
        found.append(finding)
        left = [each for each in remaining if each.key != match.key]
    costs = program.costs
    found += (
        replace(_uncured(each, trials.skipped), collectives=known[each.key])
        for each in left
        if not each.needs_cure and each.is_share(costs, _LEAST_UNCURED)
    )
    found.sort(key=lambda each: -each.cost)
    return Findings(found, _below(program, [each for each in every if is_wanted(each)]))


def _removed(before: Sequence[Collective], cured: LintedProgram) -> frozenset[Operation]:
    """Return the collectives that a fixed program does not have."""

    def key(collective: Collective) -> object:
        return collective.kind, collective.axes, collective.op.results[0].type, collective.place

    kept = {*map(key, cured.collectives)}
    return frozenset(each.op for each in before if key(each) not in kept)


def _uncured(match: Match, skipped: int) -> Finding:
    """Return the finding of a match that none of the fixes helps, except maybe those that were skipped."""
    finding = match.finding()
    if not match.worst.cures or match.program.written is None:
        return finding
    left = f"; {skipped:,} were not tried, since the program is large" if skipped else ""
    note = Diagnostic(Severity.NOTE, finding.where, f"no other layout that was tried costs less{left}")
    return replace(finding, reasons=(*finding.reasons, note))


def _wanted(found: Sequence[Match], is_wanted: Callable[[Match], bool]) -> list[Match]:
    """Return the wanted matches, without those whose collectives another match explains better.

    The other match is unwanted, or its fix cannot be tried, since it changes more than layouts.
    """
    wanted = [each for each in found if is_wanted(each)]
    unwanted = [each for each in found if each not in wanted and not each.rule.needs_cure]
    allowed = {op for each in unwanted for op in each.collectives}
    rewritten = {op for each in wanted if not each.worst.cures and not each.needs_cure for op in each.collectives}
    return [each for each in wanted if not each.overlaps(allowed | rewritten if each.needs_cure else allowed)]


_LEAST_UNCURED = 0.05
"""The smallest part of the bytes of a step for which a match is a finding though no fix helps."""

_LEAST_BELOW = 1 / 64
"""The smallest part of the bytes of a step that a match below the threshold is mentioned for."""


def _below(program: LintedProgram, every: Sequence[Match]) -> str:
    """Format the number of matches below the threshold that are a part of the bytes of a step."""
    least = max(_LEAST_BELOW * max(program.costs.received, program.costs.memory), 1)
    sizes = [
        each.size
        for each in every
        if each.rule.least == "large" and not each.needs_cure and not each.is_large and each.size >= least
    ]
    if not sizes:
        return ""
    option = format_bytes(2 ** (int(min(sizes)).bit_length() - 1)).replace(" ", "").removesuffix("iB")
    return f"above {format_bytes(program.thresholds.large)}; {len(sizes):,} below it: --large {option}"


def _cured(program: LintedProgram, cure: Cure) -> LintedProgram:
    """Return the propagated and partitioned program with a fix."""
    written = program.written and program.written.with_cure(cure)
    assert written is not None
    with capture():
        traced = traced_program(written.layouts())
    return LintedProgram(traced, program.thresholds, written)


def _named(program: LintedProgram, cured: LintedProgram, cure: Cure, after: Costs, trials: Trials) -> Cure:
    """Return the fix with the layouts that it leaves to propagation named, if that costs no more."""
    assert program.written is not None
    named = Cure(tuple(_with_name(edit, cured) for edit in cure.edits))
    costs = trials.costs(program.written, named) if named != cure else None
    return named if costs and costs.rank <= after.rank else cure


def _with_name(edit: Edit, cured: LintedProgram) -> Edit:
    if isinstance(edit, ShardArgument) and edit.dims is None:
        argument = cured.main.args[edit.index]
        return replace(edit, dims=dims_of(get_sharding(argument), argument))
    return edit


def _best_cure(
    program: LintedProgram, candidates: Sequence[Match], trials: Trials
) -> tuple[Match, Cure, Costs, Costs] | None:
    """Return the match and its fix that save most, the first of equals, and the costs before and after it."""
    if program.written is None:
        return None
    before, thresholds = program.costs, program.thresholds
    fixes_of = [(match, match.worst.cures) for match in candidates if match.is_share(before, match.rule.share)]
    # The first fix of each match, then the second of each, within the budget.
    fixes = [
        (match, cures[number]) for number in range(_MOST_TRIES) for match, cures in fixes_of if number < len(cures)
    ]
    solved: set[Match] = set()
    helping: list[tuple[Match, Cure, Costs, Costs]] = []
    for match, cure in fixes:
        after = None if match in solved else trials.costs(program.written, cure)
        if after is None or not is_better(before, after, thresholds.large, match.rule.share):
            continue
        if match.is_reduced(before, after, _LEAST_PART):
            helping.append((match, cure, before, after))
            if match.is_reduced(before, after, _SOLVED) and after.received <= (1 - _SOLVED) * before.received:
                solved.add(match)
    order = {match: number for number, match in enumerate(candidates)}
    return min(
        helping, key=lambda each: (each[3].rank, each[1].is_open, order[each[0]], len(each[1].edits)), default=None
    )


_LEAST_PART, _SOLVED = 0.5, 0.95
"""The parts of the cost of a match that a fix of it saves, and with which, and so much of all, no other is tried."""

_LEAST_FASTER = 0.2
"""The part of the step time that a fix saves which saves less of the bytes."""

_MOST_GROWTH = 0.05
"""The part by which one cost may grow while another one shrinks."""

_MOST_SLOWDOWN = 0.02
"""The part by which the predicted time may grow while fewer bytes are received: it is not more exact."""

_TRADED = 1 / 8
"""The bytes of memory that may be taken for each byte that is not received in a step, and the reverse."""


def is_better(before: Costs, after: Costs, least: int, share: float) -> bool:
    """Return whether a fix saves bytes, memory or time, and takes little of the others.

    Args:
        before: The costs without the fix.
        after: The costs with it.
        least: The fewest bytes that it saves.
        share: The smallest part of the bytes or the time of a step that it saves.
    """
    received, memory = before.received - after.received, before.memory - after.memory
    if after.compute > (1 + _MOST_GROWTH) * before.compute:
        return False
    if -memory > max(_MOST_GROWTH * before.memory, _TRADED * received):
        return False
    if received >= max(least, share * before.received):
        return after.seconds <= (1 + _MOST_SLOWDOWN) * before.seconds
    if -received > max(_MOST_GROWTH * before.received, _TRADED * memory):
        return before.compute - after.compute > share * before.seconds and after.seconds < before.seconds
    return memory >= max(least, share * before.memory) and after.seconds <= (1 + _MOST_GROWTH) * before.seconds


def _kind(suspicion: Suspicion, program: LintedProgram) -> object:
    """Return the grouping key of matches: the problem without indices, and its line if the source is Python.

    A line of Python can stand for many operations, since a loop traces it repeatedly; a line of MLIR is one operation.
    """
    where = program.place(suspicion.at)
    line = (where.filename, where.line) if where and where.filename.endswith(".py") else None
    return without_numbers(suspicion.what), line


def _library_notes(program: LintedProgram, worst: Suspicion) -> Iterator[Diagnostic]:
    library = program.places.library(worst.at)
    if library is not None:
        yield Diagnostic(Severity.NOTE, library, "in a library, at this line")


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
