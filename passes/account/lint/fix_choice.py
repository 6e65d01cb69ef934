"""The choice of a fix: the one that saves most of those that are tried on copies of a program."""

from collections.abc import Sequence

from sdy.passes.account.lint.edits import Cure, Edit
from sdy.passes.account.lint.matches import Match
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.written import Costs, Trials, WrittenProgram

_MOST_TRIES = 12
"""Number of fixes that are tried for one match."""

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

_LEAST_ADDED = 0.1
"""The smallest part of what a fix saves that some of its edits add to the others."""

_MOST_PARTS = 4
"""Number of fixes with fewer edits that are tried in place of a fix."""

ChosenFix = tuple[Match, Cure, Costs, Costs]
"""A match, its fix, and the costs before and after the fix."""


def best_cure(program: LintedProgram, candidates: Sequence[Match], trials: Trials) -> ChosenFix | None:
    """Return the match and its fix that save most, the first of equals, and the costs before and after it.

    Edits of the fix that save little of that are left out: another mistake may be their cause.
    """
    if program.written is None:
        return None
    before, thresholds = program.costs, program.thresholds
    fixes_of = [(match, match.worst.cures) for match in candidates if match.is_share(before, match.rule.share)]
    # The first fix of each match, then the second of each, within the budget.
    fixes = [
        (match, cures[number]) for number in range(_MOST_TRIES) for match, cures in fixes_of if number < len(cures)
    ]
    solved: set[Match] = set()
    helping: list[ChosenFix] = []
    for match, cure in fixes:
        after = None if match in solved else trials.costs(program.written, cure)
        if after is None or not is_better(before, after, thresholds.large, match.rule.share):
            continue
        if _is_reduced(match, before, after, _LEAST_PART):
            helping.append((match, cure, before, after))
            if _is_reduced(match, before, after, _SOLVED) and after.received <= (1 - _SOLVED) * before.received:
                solved.add(match)
    order = {match: number for number, match in enumerate(candidates)}
    best = min(
        helping, key=lambda each: (each[3].rank, each[1].is_open, order[each[0]], len(each[1].edits)), default=None
    )
    return best and smallest_part(program.written, best, fixes, trials)


def smallest_part(
    program: WrittenProgram, best: ChosenFix, fixes: Sequence[tuple[Match, Cure]], trials: Trials
) -> ChosenFix:
    """Return the fix with the fewest of the edits of `best` that saves nearly as much, and a match that has it."""
    match, cure, before, after = best
    least = (1 - _LEAST_ADDED) * _saved(before, after)
    parts: dict[frozenset[Edit], tuple[Match, Cure]] = {}
    for other, part in sorted(fixes, key=lambda each: each[0] is not match):
        if {*part.edits} < {*cure.edits}:
            parts.setdefault(frozenset(part.edits), (other, part))
    for other, part in sorted(parts.values(), key=lambda each: -len(each[1].edits))[:_MOST_PARTS]:
        costs = trials.costs(program, part) if {*part.edits} < {*cure.edits} else None
        is_enough = costs is not None and _saved(before, costs) >= least
        if costs is not None and is_enough and costs.seconds <= (1 + _MOST_SLOWDOWN) * after.seconds:
            match, cure, after = other, part, costs
    return match, cure, before, after


def _saved(before: Costs, after: Costs) -> float:
    """Return the bytes and the memory that a fix saves."""
    return max(before.received - after.received, 0) + max(before.memory - after.memory, 0)


def _is_reduced(match: Match, before: Costs, after: Costs, part: float) -> bool:
    """Return whether a fix saves this part of the cost."""
    is_faster = before.seconds - after.seconds >= _LEAST_FASTER * before.seconds
    is_enough = _saved(before, after) >= part * match.worst.cost
    return (part < _SOLVED and (match.rule.is_unmeasured or is_faster)) or is_enough


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
