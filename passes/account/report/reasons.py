"""The report's propagation chains: the steps that brought each axis to each tensor, with shared steps stored once."""

from collections.abc import Hashable, Iterable

from xdsl.ir import SSAValue

from sdy.dialect.shardings import get_sharding
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.propagation.provenance.explain import Explainer, Stop, added_later
from sdy.passes.propagation.provenance.explanation import Origin

_COLUMNS = ("value", "name", "axis", "why", "place", "previous")
"""Columns of the table of steps: the tensor (by number and by name), its axis, the cause, its location, and the
previous step."""


class Reasons:
    """Table of the propagation steps of all axes, each after the step that it continues."""

    def __init__(self, explainer: Explainer, listing: Listing, numbers: Numbers) -> None:
        self._explainer = explainer
        self._listing = listing
        self._numbers = numbers
        self._known: dict[Hashable, int] = {}
        self._steps: dict[str, list[int]] = {name: [] for name in _COLUMNS}

    def of(self, value: SSAValue) -> list[int]:
        """Return the dimension and the last step of each axis of a tensor, as a flat list."""
        sharding = get_sharding(value)
        flat: list[int] = []
        for dimension, dim in enumerate(sharding.dims if sharding else ()):
            for axis in dim.axes:
                stops = self._explainer.stops(value, axis)
                last = [self._step(stop) for stop in stops] or [self._later(value, str(axis))]
                flat += [number for step in last for number in (dimension, step)]
        return flat

    def as_json(self, explained: Iterable[SSAValue]) -> Json:
        """Serialize the steps by column, and the last steps of each tensor.

        For each replicated tensor in `explained`, add the axes that did not propagate to it, with the reason.
        """
        reasons = [self.of(value) for value in self._listing.values]
        missed = {self._listing.value(value): self._missed(value) for value in explained if not self.of(value)}
        return {"reasons": reasons, "steps": self._steps, "missed": missed}

    def _missed(self, value: SSAValue) -> list[list[int]]:
        """Return, for each axis that did not propagate: dimension, axis, blocked step, its location and the reason."""
        numbers = self._numbers
        return [
            [
                missed.dimension,
                numbers.string(str(missed.axis)),
                numbers.string(f"{missed.hop.edge} {missed.hop.through}"),
                numbers.place(missed.hop.where),
                numbers.string(missed.reason),
            ]
            for missed in self._explainer.missed(value)
        ]

    def _step(self, stop: Stop) -> int:
        """The number of a stop, which is added, and those that it came from before it, where it is new."""
        way: list[Stop] = []
        at: Stop | None = stop
        while at is not None and at.key not in self._known:
            way.append(at)
            at = self._explainer.before(at)
        previous = NONE if at is None else self._known[at.key]
        for each in reversed(way):
            previous = self._known[each.key] = self._add(each, previous)
        return self._known[stop.key]

    def _add(self, stop: Stop, previous: int) -> int:
        run, node = stop.run, stop.node
        value, name = self._explainer.names.value(run, node), self._explainer.names.of_node(run, node)
        if previous == NONE:
            return self._append(value, name, str(stop.axis), self._explainer.origin(stop), previous)
        hop = self._explainer.hop(stop)
        return self._append(value, name, str(stop.axis), Origin(hop.through, hop.where), previous)

    def _later(self, value: SSAValue, axis: str) -> int:
        """Add a step for an axis that a pass after propagation added."""
        return self._append(value, self._explainer.names.of_value(value), axis, added_later(value), NONE)

    def _append(self, value: SSAValue | None, name: str, axis: str, why: Origin, previous: int) -> int:
        numbers = self._numbers
        row = [
            self._listing.value(value),
            numbers.string(name),
            numbers.string(axis),
            numbers.string(why.text),
            numbers.place(why.where),
            previous,
        ]
        for column, entry in zip(self._steps.values(), row, strict=True):
            column.append(entry)
        return len(self._steps["axis"]) - 1
