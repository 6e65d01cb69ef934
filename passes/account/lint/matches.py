"""Matches of lint rules in a program: equal ones are one match, and each is written as a finding."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, zip_longest

from xdsl.ir import BlockArgument, Operation

from sdy.diagnostics import Diagnostic, Location, Severity
from sdy.ir.walking import cached_walks
from sdy.passes.account.lint.catalog import Rule
from sdy.passes.account.lint.edits import Cure, LazyCures
from sdy.passes.account.lint.failures import Failures
from sdy.passes.account.lint.findings import Finding, GivenBy, Reason, Suspicion, without_numbers
from sdy.passes.account.lint.places import python_line
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.thresholds import LEAST_FASTER
from sdy.passes.account.lint.written import Costs

_MOST_DIFFERENT = 4
"""Number of equal matches with different texts whose fixes are tried."""

_MOST_CHAINS = 4
"""Number of axes of a tensor whose origin is reported."""


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

    @cached_property
    def received(self) -> float:
        """The bytes that a device receives because of the matches."""
        return sum(each.received for each in self.alike)

    @property
    def is_large(self) -> bool:
        """Return whether the matches reach the threshold of the rule, or take a large part of the step time."""
        if self.rule.least is None or self.size >= getattr(self.program.thresholds, self.rule.least):
            return True
        seconds = self.program.seconds(self.collectives) if self.rule.is_of_time else 0.0
        return seconds >= LEAST_FASTER * self.program.costs.seconds > 0

    @cached_property
    def collectives(self) -> set[Operation]:
        """The collectives that the matches explain."""
        return {op for each in self.alike for op in each.collectives}

    def overlaps(self, collectives: Set[Operation]) -> bool:
        """Return whether the matches explain one of `collectives`."""
        return not self.collectives.isdisjoint(collectives)

    def is_within(self, collectives: Set[Operation]) -> bool:
        """Return whether the matches explain some of `collectives` and no others."""
        return bool(self.collectives) and self.collectives <= collectives

    def has_fix_of_arguments(self, cure: Cure) -> bool:
        """Return whether a fix of the matches shards the arguments that `cure` does."""
        return bool(cure.arguments) and any(each.arguments == cure.arguments for each in self.cures)

    @property
    def arguments(self) -> frozenset[int]:
        """The indices of the arguments whose axes explain the costliest match."""
        values = [each.tensor for each in self.worst.reasons if isinstance(each, GivenBy)]
        traced = [at for value in values for at in self.program.use_def.trace(value)]
        return frozenset(
            at.index for at in traced if isinstance(at, BlockArgument) and at.owner is self.program.main.body.block
        )

    @property
    def axes(self) -> frozenset[str]:
        """The axes that explain the costliest match."""
        return frozenset(axis.name for each in self.worst.reasons if isinstance(each, GivenBy) for axis in each.axes)

    @property
    def needs_cure(self) -> bool:
        """Return whether it is a finding only where a fix that was tried helps."""
        return self.rule.needs_cure or (self.worst.needs_cure and self.program.written is not None)

    @property
    def worst(self) -> Suspicion:
        """The costliest one."""
        return max(self.alike, key=lambda each: each.cost)

    @cached_property
    def cures(self) -> Sequence[Cure]:
        """The fixes of the costliest matches, in program order, the first one of each before the others."""
        different = {each.what: each for each in sorted(self.alike, key=lambda each: each.cost)}
        costliest = [*different.values()][-_MOST_DIFFERENT:]
        rounds = zip_longest(*(each.cures for each in self.alike if each in costliest))
        return [*dict.fromkeys(cure for each in rounds for cure in each if cure is not None)]

    def is_share(self, costs: Costs, share: float) -> bool:
        """Return whether the cost is at least this part of the bytes of a step, or is not one of layouts.

        Memory for which no fix is known is reported whatever its part.
        """
        received, held = self.received, sum(each.held for each in self.alike)
        is_measured = not self.rule.is_of_number and not self.rule.is_unmeasured and not self.worst.avoided
        least_held = share * costs.memory if self.worst.cures else 1
        return not is_measured or received >= share * costs.received > 0 or held >= least_held

    @cached_property
    def finding(self) -> Finding:
        """The finding; one whose fixes can be tried has no suggested fix."""
        worst, program = self.worst, self.program
        where = program.place(worst.at)
        caller, *outer = program.places.callers(worst.at) or [None]
        return Finding(
            self.rule.name,
            where,
            caller,
            worst.what,
            "" if worst.cure and program.written and worst.cures else worst.cure,
            (
                *(Diagnostic(Severity.NOTE, each, "called from here") for each in outer),
                *_library_notes(program, worst),
                *(note for reason in worst.reasons for note in _notes(reason, where, program)),
            ),
            sum(each.received for each in self.alike),
            sum(each.held for each in self.alike),
            sum(each.avoided for each in self.alike),
            sum(each.times for each in self.alike) - worst.times,
            self._others(where),
            self.rule.severity,
        )

    def _others(self, where: Location | None) -> tuple[str, ...]:
        """Return the names of the other arguments, or the locations of the other matches that are elsewhere."""
        block = self.program.main.body.block
        others = [each.at for each in self.alike if each is not self.worst]
        arguments = [at for at in others if isinstance(at, BlockArgument) and at.block is block]
        if len(arguments) == len(others):
            return tuple(self.program.names[each.index] for each in arguments)
        places = dict.fromkeys(self.program.place(at) for at in others)
        return tuple(each.short for each in places if each is not None and each != where)


@cached_walks()
def matches(program: LintedProgram, rules: Iterable[Rule], failures: Failures) -> list[Match]:
    """Return the matches of `rules`; a collective is explained by the first rule that needs no fix to explain it."""
    explained: set[Operation] = set()
    found: list[Match] = []
    for rule in rules:
        kinds: dict[object, list[Suspicion]] = {}
        is_beside = rule.needs_cure or rule.is_of_number
        every = failures.of_rule(rule.name, partial(_suspicions, rule, program, failures))
        new = [each for each in every if is_beside or explained.isdisjoint(each.collectives)]
        for suspicion in new:
            kinds.setdefault(_kind(suspicion, program), []).append(suspicion)
            if not is_beside:
                explained.update(suspicion.collectives)
        found += [Match(rule, program, alike, (rule.name, kind)) for kind, alike in kinds.items()]
    return found


def _suspicions(rule: Rule, program: LintedProgram, failures: Failures) -> list[Suspicion]:
    """Return what a rule finds; fixes that it lists later are none if it fails then."""

    def guarded(cures: Sequence[Cure]) -> Sequence[Cure]:
        return LazyCures(lambda: failures.of_rule(rule.name, lambda: [*cures]))

    return [
        replace(each, cures=guarded(each.cures)) if isinstance(each.cures, LazyCures) else each
        for each in rule.check(program)
    ]


def _kind(suspicion: Suspicion, program: LintedProgram) -> object:
    """Return the grouping key of matches: their cause, or the problem without indices and its line in Python.

    A line of Python can stand for many operations, since a loop traces it repeatedly; a line of MLIR is one operation.
    """
    if suspicion.cause is not None:
        return suspicion.cause
    where = python_line(program.place(suspicion.at))
    return without_numbers(suspicion.what), where and (where.filename, where.line)


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
