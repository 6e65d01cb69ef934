"""Multi-start coordinate descent over the layout choices.

Propagation derives most of a layout from few choices. Each choice is optimized in turn, with the others fixed, by the
estimated cost of the program.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter

from sdy.passes.auto.choices import Assignment, Choice, with_priority
from sdy.passes.auto.estimate import Estimate, Estimator, Held
from sdy.passes.auto.limits import LimitReachedError, Limits
from sdy.passes.auto.shared_propagation import Layout
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.sharding import TensorSharding, equivalent


@dataclass(frozen=True)
class Candidate:
    """A layout and its estimated cost."""

    name: str
    """The name of the layout that the search started from."""
    assignment: Assignment
    cost: StepCost
    is_exact: bool = True
    """False if `cost` is only a lower bound, as of a candidate that is worse than a known one."""


_BEGINS = 4
"""Number of layouts that the search starts from."""

_VARIED = 3
"""Number of them with different shardings of the data."""

_WORTH_A_START = 1.25
"""The search starts from no layout that is slower than another one by this factor."""

_FAR_OFF = 2.0
"""A layout is not estimated precisely if it is slower by this factor, unless the search goes on from it."""

_PROMISING = 3
"""Number of the best options of a choice that are tried again after the first sweep."""

_MOST_RESULTS = 12
"""Number of intermediate values, those that take the most memory, whose choices are searched."""

_PAIRED = 6
"""Number of the largest choices that are optimized in pairs."""

_DIGITS = 5
"""Significant digits of a step time. Of layouts with equal digits, the one with less memory is better."""

_CLEARLY = 0.9999
"""A layout is a clear improvement if its time is below this fraction of the previous one; descent goes on only then."""

Rank = tuple[float, float, int]
"""Lexicographic objective: bytes in excess of the memory, rounded seconds, peak bytes."""

_Key = frozenset[tuple[int, TensorSharding]]
"""Hashable form of an assignment."""

_FRONT = "less memory"
"""The name of the layouts that are chosen among all that were estimated."""

_NOTHING_CHOSEN = Candidate("one choice", {}, StepCost(0.0, {}, 0))


class Search:
    """Search for the fastest layout that fits into memory.

    Args:
        estimator: Estimates the costs of layouts.
        choices: The choices of arguments.
        of_results: The choices of intermediate values.
        memory: The bytes that a device may use.
        limits: End the search.
        progress: Called with each layout that is better than those before.
    """

    def __init__(
        self,
        estimator: Estimator,
        choices: Sequence[Choice],
        of_results: Sequence[Choice],
        memory: float,
        limits: Limits,
        progress: Callable[[Candidate], None],
    ) -> None:
        self._estimator = estimator
        self._choices = choices
        self._of_results = of_results
        self._nodes = {choice.node: choice.nodes for choice in (*choices, *of_results)}
        self._memory = memory
        self._allowed = memory
        """The memory limit that ranks use: `memory`, or infinity while the limit is ignored."""
        self._limits = limits
        self._progress = progress
        self._known: dict[_Key, Estimate] = {}
        self._shardings: dict[_Key, Sequence[TensorSharding | None]] = {}
        self._best: Candidate | None = None

    def estimated(self, layouts: Iterable[tuple[str, Assignment]]) -> list[Candidate]:
        """Estimate the costs of layouts, given with their names, without those that are far off or past a limit."""
        candidates: list[Candidate] = []
        with self._limits.obeyed():
            for name, layout in layouts:
                if (candidate := self.unless_far_off(name, layout)).is_exact:
                    candidates.append(self.settled(candidate))
        return candidates

    def run(self, starts: Sequence[Candidate]) -> list[Candidate]:
        """Run the search until it converges or reaches a limit.

        It starts from the best few of `starts` and of the layouts with a single choice made.

        Returns:
            The local optima and `starts`, the best first.
        """
        candidates = [*starts]
        with self._limits.obeyed():
            begins = [*candidates, *map(self.settled, self._single_choices(min(candidates, key=self.rank)))]
            candidates.extend(map(self._descended, self._varied(begins)))
            candidates.append(self._descended(self._best_pair_change(min(candidates, key=self.rank))))
            candidates.append(self._descended(self.best_priority(self.different(candidates))))
            best = min(candidates, key=self.rank)
            for begin in self.different([best, self._fastest([*begins, *candidates])]):
                settled = self.settled(begin)
                if of_results := self.choices_of_results(settled.assignment):
                    candidates.append(self.settled(self.descend(settled, of_results)))
        if self._best is not None:
            with self._limits.lifted():
                candidates.append(self.settled(self._best))
        return sorted(candidates, key=self.rank)

    def _varied(self, begins: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the layouts to start from, the best first: those with different shardings of the data before others.

        Descent changes one choice after the other, which seldom leads from one layout of the data to another one.
        """
        ranked = self.different(begins)
        worth = self.rank_of(ranked[0].cost, _WORTH_A_START)
        data = [choice for choice in self._choices if not choice.is_state]
        best_of_each: dict[tuple[TensorSharding, ...], Candidate] = {}
        for each in ranked:
            if self.rank(each) < worth:
                best_of_each.setdefault(tuple([self.final(choice, each) for choice in data]), each)
        varied = [*best_of_each.values()][:_VARIED]
        return [*varied, *(each for each in ranked if each not in varied)][:_BEGINS]

    def _fastest(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the best layout without the memory limit; sharding intermediate values may make it fit."""
        best = min(candidates, key=self.rank)
        if not any(
            each.cost.memory > self._memory and each.cost.seconds < best.cost.seconds for each in self._known.values()
        ):
            return best
        self._allowed = math.inf
        try:
            return self.descend(min(candidates, key=self.rank), self._choices)
        finally:
            self._allowed = self._memory

    def choices_of_results(self, assignment: Assignment) -> Sequence[Choice]:
        """Return choices that shard further the intermediate values that take the most memory in a layout."""
        shardings = self.shardings(assignment)
        bytes_ = self._estimator.peak_bytes_by_node(self._layout(assignment))
        choices: list[Choice] = []
        for choice in sorted(self._of_results, key=lambda choice: -bytes_[list(choice.nodes)].sum()):
            options = tuple([option for option in choice.options if _refines(option, shardings[choice.node])])
            if options and bytes_[list(choice.nodes)].any():
                choices.append(replace(choice, options=options))
        return choices[:_MOST_RESULTS]

    def _single_choices(self, known: Candidate) -> Iterator[Candidate]:
        """Yield the layouts with a single choice made that are not much slower than a known one.

        A batch that the mesh does not divide can be sharded at an intermediate value only, with padding. The choice is
        not one of state unless all are.
        """
        data = [choice for choice in self._choices if not choice.is_state]
        for choice in (*(data or self._choices), *self.choices_of_results({})):
            for each in self._others(choice, _NOTHING_CHOSEN, choice.options, self.rank_of(known.cost, _WORTH_A_START)):
                if each.is_exact:
                    yield each

    def unless_far_off(self, name: str, assignment: Assignment) -> Candidate:
        """Estimate the cost of a layout; the estimate stops where it is `_FAR_OFF` times as slow as one that fits."""
        known = self._best
        far_off = _FAR_OFF * known.cost.seconds if known is not None and known.cost.memory <= self._memory else math.inf
        return self._candidate(name, assignment, lambda cost: cost.seconds > far_off)

    def candidate(self, name: str, assignment: Assignment, to_beat: Rank | None = None) -> Candidate:
        """Estimate the cost of a layout; the estimate may stop at a lower bound that is not below `to_beat`."""
        return self._candidate(name, assignment, lambda cost: to_beat is not None and self.rank_of(cost) >= to_beat)

    def _candidate(self, name: str, assignment: Assignment, is_too_much: Callable[[StepCost], bool]) -> Candidate:
        estimate = self._estimate(assignment, is_too_much)
        candidate = Candidate(name, assignment, estimate.cost, estimate.is_exact)
        if candidate.is_exact and self._is_better_than_all(candidate):
            self._best = candidate
            self._progress(candidate)
        return candidate

    def _is_better_than_all(self, candidate: Candidate) -> bool:
        known = self._best
        return known is None or _rank(candidate.cost, self._memory) < _rank(known.cost, self._memory)

    def rank(self, candidate: Candidate) -> Rank:
        """Return the sort key of a candidate: those that fit come first; of the others, those that need less."""
        return self.rank_of(candidate.cost)

    def rank_of(self, cost: StepCost, slower: float = 1.0) -> Rank:
        """Return the sort key of a cost, with its time multiplied by `slower`."""
        return _rank(cost, self._allowed, slower)

    def different(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates without those of equal cost, the best first."""
        ranked = sorted(candidates, key=self.rank, reverse=True)
        return list({(each.cost.seconds, each.cost.memory): each for each in ranked}.values())[::-1]

    def front(self) -> list[Candidate]:
        """Return the Pareto front of all estimated layouts, the fastest first: less time needs more memory."""
        known = [(key, estimate.cost) for key, estimate in self._known.items() if estimate.is_exact]
        front: list[Candidate] = []
        for key, cost in sorted(known, key=lambda each: (each[1].seconds, each[1].memory)):
            if not front or cost.memory < front[-1].cost.memory:
                front.append(Candidate(_FRONT, dict(sorted(key, key=itemgetter(0))), cost))
        return front

    def descend(self, begin: Candidate, choices: Sequence[Choice], sweeps: float = math.inf) -> Candidate:
        """Coordinate descent: optimize one choice after the other until none improves clearly or a limit is reached.

        The first sweep tries the options near those of `begin`; later ones only the best few of each choice.

        Args:
            begin: The layout to start from.
            choices: The choices to optimize.
            sweeps: The maximum number of sweeps over the choices.
        """
        best = begin
        swept = unchanged = 0
        promising = {choice.node: self._near(choice, begin) for choice in choices}
        with suppress(LimitReachedError):
            while unchanged < len(choices) and swept < sweeps:
                swept += 1
                for choice in choices:
                    tried = sorted(self._others(choice, best, promising[choice.node], self.rank(best)), key=self.rank)
                    better = tried[0] if tried and self.rank(tried[0]) < self.rank(best) else best
                    unchanged = 0 if self._is_clearly_better(better, best) else unchanged + 1
                    several = self.different([best, *tried])[:_PROMISING]
                    promising[choice.node] = [each.assignment.get(choice.node) for each in several]
                    best = better
        return best

    def _best_pair_change(self, begin: Candidate) -> Candidate:
        """Return the best layout that changes two of the largest choices of `begin`, or `begin` if none is better.

        If two arguments are sharded to match each other, a change of one of them alone does not help. All other
        choices keep their shardings, including those that propagation decides.
        """
        settled = self.settled(begin)
        largest = sorted(self._choices, key=lambda choice: -math.prod(choice.shape))[:_PAIRED]
        best, options = begin, dict[int, list[TensorSharding | None]]()
        far_off = self.rank_of(settled.cost, _FAR_OFF)
        for choice in largest:
            others = self.different([*self._others(choice, settled, self._options(choice), far_off)])[:_PROMISING]
            options[choice.node] = [each.assignment.get(choice.node) for each in others]
        for one, other in combinations(largest, 2):
            for first in self._others(one, settled, options[one.node], self.rank(best)):
                best = min((best, *self._others(other, first, options[other.node], self.rank(best))), key=self.rank)
        return best

    def best_priority(self, begins: Sequence[Candidate]) -> Candidate:
        """Return the best of `begins`, and of the same layouts with one priority for all state.

        If data and parameters are sharded over the same axis, the priorities of all parameters together decide what is
        gathered: a change of one choice does not help.
        """
        best = begins[0]
        state = [choice.node for choice in self._choices if choice.is_state]
        for settled in map(self.settled, begins):
            for priority in dict.fromkeys(choice.priority for choice in self._choices):
                changed = {node: with_priority(settled.assignment[node], priority) for node in state}
                layout = {**settled.assignment, **changed}
                best = min(best, self.candidate(settled.name, layout, self.rank(best)), key=self.rank)
        return best

    def _descended(self, begin: Candidate) -> Candidate:
        return self.settled(self.descend(begin, self._choices))

    def settled(self, candidate: Candidate) -> Candidate:
        """Fix all argument shardings of a candidate to those that propagation gives them."""
        propagated = {choice.node: self.final(choice, candidate) for choice in self._choices}
        return self.candidate(candidate.name, {**candidate.assignment, **propagated})

    def _is_clearly_better(self, candidate: Candidate, than: Candidate) -> bool:
        excess, seconds, _ = self.rank(candidate)
        old_excess, old_seconds, _ = self.rank(than)
        return excess < _CLEARLY * old_excess or (excess == old_excess and seconds < _CLEARLY * old_seconds)

    def runner_up(self, choice: Choice, best: Candidate) -> Candidate | None:
        """Return the best layout that differs from `best` in `choice`; None without one, or if a limit is reached."""
        present = self.final(choice, best)
        with self._limits.obeyed():
            others = [*self._others(choice, best, self._options(choice), self.rank(best))]
            while others:
                other = min(others, key=self.rank)
                if equivalent(self.final(choice, other), present):
                    others.remove(other)
                elif other.is_exact:
                    return other
                else:
                    others[others.index(other)] = self.candidate(other.name, other.assignment)
        return None

    def shardings(self, assignment: Assignment) -> Sequence[TensorSharding | None]:
        """Return the sharding of each node after propagation."""
        key = frozenset(assignment.items())
        if key not in self._shardings:
            self._shardings[key] = self._estimator.shardings(self._layout(assignment))
        return self._shardings[key]

    def final(self, choice: Choice, candidate: Candidate) -> TensorSharding:
        """Return the sharding that a candidate writes for `choice`."""
        assignment = candidate.assignment
        return choice.final(self.shardings(assignment)[choice.node], assignment.get(choice.node))

    def largest(self, candidate: Candidate) -> Sequence[Held]:
        """Return the values that are live at peak memory, the largest first."""
        return self._estimator.largest(self._layout(candidate.assignment))

    def _near(self, choice: Choice, candidate: Candidate) -> Sequence[TensorSharding | None]:
        """Return the options of a choice that move at most one axis, or that shard one dimension only."""
        present = self.final(choice, candidate)
        return [option for option in self._options(choice) if option is None or _is_near(option, present)]

    @staticmethod
    def _options(choice: Choice) -> Sequence[TensorSharding | None]:
        """Return the options of a choice; None leaves it to propagation."""
        return (None, *choice.options)

    def _others(
        self,
        choice: Choice,
        present: Candidate,
        options: Sequence[TensorSharding | None],
        to_beat: Rank | None = None,
    ) -> Iterator[Candidate]:
        """Yield the candidates that replace the option of `choice` in `present` by another one of `options`."""
        rest = {node: sharding for node, sharding in present.assignment.items() if node != choice.node}
        for option in options:
            if option is not present.assignment.get(choice.node):
                assignment = rest if option is None else {**rest, choice.node: option}
                yield self.candidate(present.name, assignment, to_beat)

    def _estimate(self, assignment: Assignment, is_too_much: Callable[[StepCost], bool]) -> Estimate:
        """Return the memoized estimate of a layout, which is exact unless `is_too_much`."""
        key = frozenset(assignment.items())

        def stops(cost: StepCost) -> bool:
            self._limits.check(self._estimator.work)
            return is_too_much(cost)

        known = self._known.get(key)
        if known is None or not (known.is_exact or is_too_much(known.cost)):
            self._limits.check(self._estimator.work)
            known = self._known[key] = self._estimator.estimate(self._layout(assignment), stops)
        return known

    def _layout(self, assignment: Assignment) -> Layout:
        return {node: sharding for one, sharding in assignment.items() for node in self._nodes[one]}


def _is_near(option: TensorSharding, present: TensorSharding) -> bool:
    """Return whether `option` moves at most one axis of `present`, or shards one dimension only."""
    places = [{ref: dim for dim, refs in enumerate(each.dim_axes) for ref in refs} for each in (option, present)]
    moved = [ref for ref in {*places[0], *places[1]} if places[0].get(ref) != places[1].get(ref)]
    return len(moved) <= 1 or sum(map(bool, option.dim_axes)) == 1


def _refines(option: TensorSharding, present: TensorSharding | None) -> bool:
    """Return whether `option` has the axes of `present` as prefixes, and more axes."""
    if present is None:
        return not option.is_fully_replicated
    dims = list(zip(option.dim_axes, present.dim_axes, strict=True))
    return option.dim_axes != present.dim_axes and all(new[: len(old)] == old for new, old in dims)


def _rank(cost: StepCost, memory: float, slower: float = 1.0) -> Rank:
    """Return the sort key of a cost under a memory limit, with its time multiplied by `slower`."""
    return max(cost.memory - memory, 0.0), float(f"{cost.seconds * slower:.{_DIGITS}g}"), cost.memory
