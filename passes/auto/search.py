"""Finding a layout: from several places to begin with, one choice after the other is made anew while that helps.

What is propagated from an argument reaches whatever has to do with it, so that most of a layout follows from few
choices, each of which can be judged by itself: by what the whole program then costs.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations

from sdy.passes.auto.choices import Assignment, Choice
from sdy.passes.auto.estimate import Estimate, Estimator, Held, Layout
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.sharding import TensorSharding, equivalent


@dataclass(frozen=True)
class Candidate:
    """A layout, and what it is estimated to cost."""

    name: str
    """Where the search for it began."""
    assignment: Assignment
    cost: StepCost
    is_exact: bool = True
    """Whether it costs so much, rather than at least so much, which is told of what others are better than."""


_BEGINS = 3
"""With so many layouts the search begins."""

_WORTH_A_START = 1.25
"""And with none that is so many times slower than another one."""

_PROMISING = 3
"""So many options of a choice are tried again."""

_MOST_RESULTS = 12
"""Of so many results, those that take most memory, it is tried to split them more."""

_PAIRED = 6
"""So many choices are made anew two at once."""

_DIGITS = 5
"""So many digits of a time count: of layouts that are equal in these, the one is better that needs less memory."""

_CLEARLY = 0.9999
"""What takes this part of the time, or more, is better by nothing that counts: the search goes on for less alone."""

_Rank = tuple[float, float, int]
"""The bytes that a layout needs and there are not, its seconds, and of what is as fast, all bytes that it needs."""

_Key = frozenset[tuple[int, TensorSharding]]
"""An assignment, as what is known of it is found by."""

_NOTHING_CHOSEN = Candidate("one choice", {}, StepCost(0.0, {}, 0))


class Search:
    """Looks for layouts that fit into `memory`, in bytes, and take least time, until a deadline.

    `progress` is told of each layout that is better than those before.
    """

    def __init__(
        self,
        estimator: Estimator,
        choices: Sequence[Choice],
        of_results: Sequence[Choice],
        memory: float,
        deadline: float,
        progress: Callable[[Candidate], None],
    ) -> None:
        self._estimator = estimator
        self._choices = choices
        self._of_results = of_results
        self._nodes = {choice.node: choice.nodes for choice in (*choices, *of_results)}
        self._memory = memory
        self._allowed = memory
        """As `memory`, but while it is left out of account."""
        self._deadline = deadline
        self._progress = progress
        self._known: dict[_Key, Estimate] = {}
        self._shardings: dict[_Key, Sequence[TensorSharding | None]] = {}
        self._best: Candidate | None = None

    def run(self, starts: Mapping[str, Assignment]) -> list[Candidate]:
        """The layouts that were arrived at, with those of `starts`, the best first.

        The search begins with the best few of `starts`, and of those in which one choice alone was made. An interrupt
        ends it, as the deadline does.
        """
        found = [self.candidate(name, start) for name, start in starts.items()]
        with suppress(KeyboardInterrupt, _TimeIsUpError):
            begins = [*found, *self._one_choice_each(min(found, key=self.rank))]
            found.extend(self.descend(begin, self._choices) for begin in self.different(begins)[:_BEGINS])
            found.append(self.descend(self._two_at_once(min(found, key=self.rank)), self._choices))
            best = min(found, key=self.rank)
            for begin in self.different([best, self._fastest(found)]):
                settled = self._settled(begin)
                if of_results := self.choices_of_results(settled.assignment):
                    found.append(self.descend(settled, of_results))
        return sorted([*found, *([] if self._best is None else [self._best])], key=self.rank)

    def _fastest(self, found: Sequence[Candidate]) -> Candidate:
        """What would be best if there were more memory; it may come to fit when results are split."""
        best = min(found, key=self.rank)
        if not any(
            each.cost.memory > self._memory and each.cost.seconds < best.cost.seconds for each in self._known.values()
        ):
            return best
        self._allowed = math.inf
        try:
            return self.descend(best, self._choices)
        finally:
            self._allowed = self._memory

    def choices_of_results(self, assignment: Assignment) -> Sequence[Choice]:
        """Of the results that take most memory with a layout, the choices to split them more."""
        shardings = self.shardings(assignment)
        taken = self._estimator.taken_by_nodes(self._layout(assignment))
        choices: list[Choice] = []
        for choice in sorted(self._of_results, key=lambda choice: -taken[list(choice.nodes)].sum()):
            options = tuple([option for option in choice.options if _splits_more(option, shardings[choice.node])])
            if options and taken[list(choice.nodes)].any():
                choices.append(replace(choice, options=options))
        return choices[:_MOST_RESULTS]

    def _one_choice_each(self, known: Candidate) -> Iterator[Candidate]:
        """The layouts in which one choice alone was made, as far as they are not much slower than a known one."""
        for choice in self._choices:
            for each in self._others(choice, _NOTHING_CHOSEN, choice.options, self.rank_of(known.cost, _WORTH_A_START)):
                if each.is_exact:
                    yield each

    def candidate(self, name: str, assignment: Assignment, to_beat: _Rank | None = None) -> Candidate:
        """A layout with its cost; if its rank is not below `to_beat`, perhaps with what it costs at least."""
        estimate = self._estimate(assignment, to_beat)
        found = Candidate(name, assignment, estimate.cost, estimate.is_exact)
        if found.is_exact and self._is_better_than_all(found):
            self._best = found
            self._progress(found)
        return found

    def _is_better_than_all(self, candidate: Candidate) -> bool:
        known = self._best
        return known is None or _rank(candidate.cost, self._memory) < _rank(known.cost, self._memory)

    def rank(self, candidate: Candidate) -> _Rank:
        """What fits comes before what does not, which is the better the less it needs."""
        return self.rank_of(candidate.cost)

    def rank_of(self, cost: StepCost, slower: float = 1.0) -> _Rank:
        """That of what costs so much, or of what is so many times slower."""
        return _rank(cost, self._allowed, slower)

    def different(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those of `candidates` that differ in what they cost, the best first."""
        ranked = sorted(candidates, key=self.rank, reverse=True)
        return list({(each.cost.seconds, each.cost.memory): each for each in ranked}.values())[::-1]

    def descend(self, begin: Candidate, choices: Sequence[Choice]) -> Candidate:
        """Make one of `choices` after the other anew, until no option is better by anything that counts, or time is up.

        When all options were tried once, only those that were best of each choice are tried again.
        """
        best = begin
        unchanged = 0
        promising = {choice.node: self._options(choice) for choice in choices}
        with suppress(_TimeIsUpError):
            while unchanged < len(choices):
                for choice in choices:
                    tried = sorted(self._others(choice, best, promising[choice.node], self.rank(best)), key=self.rank)
                    better = tried[0] if tried and self.rank(tried[0]) < self.rank(best) else best
                    unchanged = 0 if self._is_clearly_better(better, best) else unchanged + 1
                    promising[choice.node] = [each.assignment.get(choice.node) for each in (best, *tried)][:_PROMISING]
                    best = better
        return best

    def _two_at_once(self, begin: Candidate) -> Candidate:
        """The best layout that differs from `begin` in two of the largest choices, or in none, if there is no better.

        Where each of two arguments is split as suits the other, changing one of them alone does not help. The others
        stay as they are, also those that propagation decides.
        """
        settled = self._settled(begin)
        largest = sorted(self._choices, key=lambda choice: -math.prod(choice.shape))[:_PAIRED]
        best, options = begin, dict[int, list[TensorSharding | None]]()
        for choice in largest:
            others = sorted(self._others(choice, settled, self._options(choice)), key=self.rank)
            options[choice.node] = [each.assignment.get(choice.node) for each in others[:_PROMISING]]
        for one, other in combinations(largest, 2):
            for first in self._others(one, settled, options[one.node], self.rank(best)):
                best = min((best, *self._others(other, first, options[other.node], self.rank(best))), key=self.rank)
        return best

    def _settled(self, candidate: Candidate) -> Candidate:
        """The same layout with all arguments chosen, which stay as they are whatever else is."""
        shardings = self.shardings(candidate.assignment)
        chosen = {choice.node: choice.final(shardings[choice.node]) for choice in self._choices}
        return self.candidate(candidate.name, {**candidate.assignment, **chosen})

    def _is_clearly_better(self, candidate: Candidate, than: Candidate) -> bool:
        excess, seconds, _ = self.rank(candidate)
        old_excess, old_seconds, _ = self.rank(than)
        return excess < _CLEARLY * old_excess or (excess == old_excess and seconds < _CLEARLY * old_seconds)

    def runner_up(self, choice: Choice, chosen: Candidate) -> Candidate | None:
        """The best layout in which the arguments of `choice` have another sharding than in `chosen`, and all others may
        be chosen as there; None where there is none, or no time."""
        present = choice.final(self.shardings(chosen.assignment)[choice.node])
        others: list[Candidate] = []
        with suppress(_TimeIsUpError):
            others.extend(self._others(choice, chosen, self._options(choice), self.rank(chosen)))
        while others:
            best = min(others, key=self.rank)
            if equivalent(choice.final(self.shardings(best.assignment)[choice.node]), present):
                others.remove(best)
            elif best.is_exact:
                return best
            else:
                others[others.index(best)] = self.candidate(best.name, best.assignment)
        return None

    def shardings(self, assignment: Assignment) -> Sequence[TensorSharding | None]:
        """What propagation gives to each node with a layout."""
        key = frozenset(assignment.items())
        if key not in self._shardings:
            self._shardings[key] = self._estimator.shardings(self._layout(assignment))
        return self._shardings[key]

    def largest(self, candidate: Candidate) -> Sequence[Held]:
        """What takes memory when most of it is taken, the largest first."""
        return self._estimator.largest(self._layout(candidate.assignment))

    @staticmethod
    def _options(choice: Choice) -> Sequence[TensorSharding | None]:
        """What there is for a choice; None leaves it to propagation."""
        return (None, *choice.options)

    def _others(
        self,
        choice: Choice,
        present: Candidate,
        options: Sequence[TensorSharding | None],
        to_beat: _Rank | None = None,
    ) -> Iterator[Candidate]:
        """What `present` would be with others of these options of `choice`, as `candidate` tells it."""
        rest = {node: sharding for node, sharding in present.assignment.items() if node != choice.node}
        for option in options:
            if time.monotonic() > self._deadline:
                raise _TimeIsUpError
            if option is not present.assignment.get(choice.node):
                assignment = rest if option is None else {**rest, choice.node: option}
                yield self.candidate(present.name, assignment, to_beat)

    def _estimate(self, assignment: Assignment, to_beat: _Rank | None) -> Estimate:
        """What is known of a layout, or is found out: at least whether its rank is less than that `to_beat`."""
        key = frozenset(assignment.items())

        def is_too_much(cost: StepCost) -> bool:
            return to_beat is not None and self.rank_of(cost) >= to_beat

        known = self._known.get(key)
        if known is None or not (known.is_exact or is_too_much(known.cost)):
            known = self._known[key] = self._estimator.estimate(self._layout(assignment), is_too_much)
        return known

    def _layout(self, assignment: Assignment) -> Layout:
        return {node: sharding for one, sharding in assignment.items() for node in self._nodes[one]}


def _splits_more(option: TensorSharding, present: TensorSharding | None) -> bool:
    """Whether `option` splits what `present` does, and more."""
    if present is None:
        return not option.is_fully_replicated
    dims = list(zip(option.dim_axes, present.dim_axes, strict=True))
    return option.dim_axes != present.dim_axes and all(new[: len(old)] == old for new, old in dims)


def _rank(cost: StepCost, memory: float, slower: float = 1.0) -> _Rank:
    """That of what costs so much, or takes so many times longer, where there is so much memory."""
    return max(cost.memory - memory, 0.0), float(f"{cost.seconds * slower:.{_DIGITS}g}"), cost.memory


class _TimeIsUpError(Exception):
    """The deadline is over."""
