"""The choice of a fix: the one that saves most of those that are tried on copies of a program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sdy.passes.account.lint.edits import Cure, Edit
from sdy.passes.account.lint.matches import Match
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.thresholds import LEAST_FASTER, FixThresholds
from sdy.passes.account.lint.written import Costs, LeastCosts, Trials, WrittenProgram

_MOST_TRIES = 12
"""Number of fixes that are tried for one match."""

_LEAST_PART, _SOLVED = 0.5, 0.95
"""The parts of the cost of a match that a fix of it saves, and with which, and so much of all, no other is tried."""

_NEARLY = 0.03
"""The part of the costs by which a simpler fix may cost more than the best one."""

_LEAST_EVIDENT = 0.5
"""The part of what the best fix saves that one of an evident mistake saves, which is then chosen."""

_LEAST_ADDED = 0.1
"""The smallest part of what a fix saves for which further edits, or a new constraint, are worth it."""

_MOST_PARTS = 4
"""Number of fixes with fewer edits that are tried in place of a fix."""

ChosenFix = tuple[Match, Cure, Costs, Costs]
"""A match, its fix, and the costs before and after the fix."""


def costs_before(program: LintedProgram, trials: Trials) -> Costs:
    """Return the costs of a program without a fix, of the form of the program in which its fixes are tried."""
    written = program.written
    tried = trials.unchanged(written) if written and not written.is_as_linted else None
    return tried or program.costs


def best_cure(
    program: LintedProgram, candidates: Sequence[Match], trials: Trials, step: Costs, share: float = 1.0
) -> ChosenFix | None:
    """Return the match and its fix that save most, the first of equals, and the costs before and after it.

    Edits of the fix that save little of that are left out: another mistake may be their cause.

    Args:
        program: The program, with the fixes that are chosen already.
        candidates: The matches, the most specific first.
        trials: The budget.
        step: The costs without any fix, to which the shares of the rules refer.
        share: A factor of the shares of the rules.
    """
    if program.written is None:
        return None
    before = costs_before(program, trials)
    fixes_of = [
        (match, match.cures) for match in candidates if match.is_share(step, share * match.rule.fix.least_share)
    ]
    # The first fix of each match, then the second of each, within the budget.
    fixes = [
        (match, cures[number]) for number in range(_MOST_TRIES) for match, cures in fixes_of if number < len(cures)
    ]
    owners: dict[Cure, Match] = {}
    """The most specific match that has each fix: its rule says how much the fix has to save."""
    for match, cures in fixes_of:
        for cure in cures[:_MOST_TRIES]:
            owners.setdefault(cure, match)
    solved: set[Match] = set()
    helping: list[ChosenFix] = []
    for match, cure in fixes:
        least = Least.of(owners[cure], step, share)
        can_help = partial(can_be_better, before, least=least)
        bounds = LeastCosts(program.least_costs, can_help, is_of_time=least.fix.faster > 0)
        after = None if match in solved else trials.costs(program.written, cure, bounds)
        if after is None or not is_better(before, after, least):
            continue
        if _is_reduced(match, before, after, _LEAST_PART):
            helping.append((match, cure, before, after))
            if _is_reduced(match, before, after, _SOLVED) and after.received <= (1 - _SOLVED) * before.received:
                solved.add(match)
    order = {match: number for number, match in enumerate(candidates)}
    helping.sort(key=lambda each: (each[3].relative(before), each[1].is_open, order[each[0]], len(each[1].edits)))
    if not helping:
        return None
    best = _evident(helping) or _most_specific(_without_new_constraints(helping), helping, order)
    parts = [(match, cure) for match, cure in fixes if order[match] <= order[best[0]]]
    return smallest_part(program.written, best, parts, trials)


def _evident(helping: Sequence[ChosenFix]) -> ChosenFix | None:
    """Return the best fix of an evident mistake, if it saves a good part of what the best of all saves."""
    least = _LEAST_EVIDENT * _saved(*helping[0][2:])
    return next((each for each in helping if each[0].rule.is_evident and _saved(*each[2:]) >= least), None)


def _without_new_constraints(helping: Sequence[ChosenFix]) -> ChosenFix:
    """Return the best fix, or one that adds no constraint and costs nearly the same: it edits what is written."""
    best = helping[0]
    written = (each for each in helping if not each[1].adds_constraint and _is_near(each, best))
    return next(written, best) if best[1].adds_constraint else best


def _most_specific(best: ChosenFix, helping: Sequence[ChosenFix], order: Mapping[Match, int]) -> ChosenFix:
    """Return the best fix, or that of a more specific rule that shards its arguments and others."""
    wider = [each for each in helping if order[each[0]] < order[best[0]] and each[1].arguments > best[1].arguments]
    return min(wider, key=lambda each: order[each[0]], default=best) if best[1].arguments else best


def _is_near(fix: ChosenFix, best: ChosenFix) -> bool:
    """Return whether a fix costs little more than the best one: a small part, or less than a finding does."""
    match, _, before, after = fix
    least, large = best[3], match.program.thresholds.large
    return (
        after.received - least.received <= max(_LEAST_ADDED * (before.received - least.received), large)
        and after.memory - least.memory <= max(_LEAST_ADDED * (before.memory - least.memory), large)
        and after.seconds <= (1 + _NEARLY) * least.seconds
    )


def smallest_part(
    program: WrittenProgram, best: ChosenFix, fixes: Sequence[tuple[Match, Cure]], trials: Trials
) -> ChosenFix:
    """Return the fix with the fewest of the edits of `best` that saves nearly as much, and a match that has it.

    It also takes little more of the bytes or of the memory.
    """
    match, cure, before, after = best
    saved = _saved(before, after)
    little = _LEAST_ADDED * saved
    parts: dict[frozenset[Edit], tuple[Match, Cure]] = {}
    for other, part in sorted(fixes, key=lambda each: each[0] is not match):
        if {*part.edits} < {*cure.edits}:
            parts.setdefault(frozenset(part.edits), (other, part))
    for other, part in sorted(parts.values(), key=lambda each: -len(each[1].edits))[:_MOST_PARTS]:
        costs = trials.costs(program, part) if {*part.edits} < {*cure.edits} else None
        if costs is None or _saved(before, costs) < saved - little or _added(after, costs) > little:
            continue
        if costs.seconds <= (1 + _NEARLY) * after.seconds:
            match, cure, after = other, part, costs
    return match, cure, before, after


def _saved(before: Costs, after: Costs) -> float:
    """Return the bytes and the memory that a fix saves, at the peak or between steps."""
    memory = max(before.memory - after.memory, before.arguments - after.arguments, 0)
    return max(before.received - after.received, 0) + memory


def _added(first: Costs, second: Costs) -> float:
    """Return the bytes and the memory that the second fix takes more than the first one."""
    return max(second.received - first.received, 0) + max(second.memory - first.memory, 0)


def _is_reduced(match: Match, before: Costs, after: Costs, part: float) -> bool:
    """Return whether a fix saves this part of the cost, and the part of the received bytes that the rule wants."""
    if max(before.received - after.received, 0) < match.rule.fix.part * match.received:
        return False
    is_faster = before.seconds - after.seconds >= LEAST_FASTER * before.seconds
    is_enough = _saved(before, after) >= part * match.worst.cost
    return (part < _SOLVED and (match.rule.is_unmeasured or is_faster)) or is_enough


@dataclass(frozen=True)
class Least:
    """The least that a fix of a match saves of each cost of a step, and the thresholds of the rule."""

    large: float
    """The received bytes that are enough together with the seconds."""
    received: float
    memory: float
    seconds: float
    fix: FixThresholds
    is_of_arguments: bool = False
    """True if memory that the arguments take is saved, even if not at the peak."""
    is_of_time: bool = False
    """True if a large part of the time is enough, whatever the bytes."""

    @classmethod
    def of(cls, match: Match, step: Costs, factor: float) -> "Least":
        """Return the share of the costs of a step that the rule has, and at least the bytes of the threshold."""
        rule, large = match.rule, match.program.thresholds.large
        share, seconds = factor * rule.fix.share, factor * rule.fix.least_time * step.seconds
        received = max(rule.fix.many_large * large, share * step.received)
        return cls(
            large, received, max(large, share * step.memory), seconds, rule.fix, rule.saves_arguments, rule.is_of_time
        )


def is_better(before: Costs, after: Costs, least: Least) -> bool:
    """Return whether a fix saves at least `least` bytes, memory or time, and takes little of the others."""
    return _takes_little(before, after, least.fix) and _saves(before, after, least)


def can_be_better(before: Costs, bounds: Costs, least: Least) -> bool:
    """Return whether a fix whose costs are at least `bounds` can be better."""
    computes_less = not least.fix.faster and before.compute - bounds.compute > least.seconds
    return _takes_little(before, bounds, least.fix) and (_saves(before, bounds, least) or computes_less)


def _takes_little(before: Costs, after: Costs, fix: FixThresholds) -> bool:
    """Return whether a fix is as fast as its rule demands, and repeats little computation and needs little memory."""
    received, memory = before.received - after.received, after.memory - before.memory
    repeated = after.compute - before.compute
    receives_little = -received <= max(fix.growth * before.received, -fix.traded * memory)
    is_faster = after.seconds <= (1 - fix.faster) * before.seconds and receives_little
    repeats_little = repeated <= max(fix.growth, fix.slower) * before.seconds
    is_worth_it = after.seconds <= (1 - fix.repeating) * before.seconds
    return (
        (not fix.faster or is_faster)
        and (repeats_little or is_worth_it)
        and memory <= max(fix.growth * before.memory, fix.traded * received)
    )


def _pays(before: Costs, after: Costs, fix: FixThresholds) -> bool:
    """Return whether the computation that a fix saves is worth the communication that it adds."""
    added = (after.seconds - after.compute) - (before.seconds - before.compute)
    return before.compute - after.compute >= fix.paying * added


def _saves(before: Costs, after: Costs, least: Least) -> bool:
    """Return whether a fix saves enough bytes in about the time, or enough memory for few bytes, or computation."""
    fix, received, memory = least.fix, before.received - after.received, before.memory - after.memory
    is_faster = before.seconds - after.seconds >= least.seconds
    computes_less = memory >= least.large and before.compute - after.compute >= LEAST_FASTER * before.seconds
    is_much_faster = before.seconds - after.seconds >= LEAST_FASTER * before.seconds
    if received >= 0 and is_much_faster and (least.is_of_time or computes_less):
        return True
    if received >= least.received or (received >= least.large and is_faster):
        return after.seconds <= (1 + fix.slower) * before.seconds
    if -received > max(fix.growth * before.received, fix.traded * memory):
        is_faster = before.compute - after.compute > least.seconds and after.seconds < before.seconds
        return is_faster and (-received <= memory or _pays(before, after, fix))
    saved = max(memory, before.arguments - after.arguments) if least.is_of_arguments else memory
    return saved >= least.memory and after.seconds <= (1 + fix.growth) * before.seconds
