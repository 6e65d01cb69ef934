"""Times of a predicted step of a pipeline, as numbers, text, picture and trace."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from sdy.passes.common.trace_events import TraceSlice, trace_events
from sdy.passes.mpmd.timeline import WIDTH, Timeline, TimelineSlice, format_timeline
from sdy.passes.mpmd.timeline_picture import timeline_svg

RowT = TypeVar("RowT")

Rows = Mapping[str, Sequence[TimelineSlice]]
"""The slices of each row, by its name."""


class PredictedStep(ABC, Generic[RowT]):
    """A predicted step of devices, or of meshes, that compute and send values to each other."""

    __slots__ = ()

    @property
    @abstractmethod
    def _computation(self) -> Timeline[RowT]:
        """The computation of each device or mesh."""

    @property
    @abstractmethod
    def _rows(self) -> Rows:
        """The rows of `_computation`, in the order in which they are shown."""

    @property
    @abstractmethod
    def _links(self) -> Rows:
        """The transfers of each link."""

    @property
    def seconds(self) -> float:
        """The time of a step: of consecutive steps, from start to start."""
        return self._computation.period

    @property
    def bubble(self) -> float:
        """The part of the step in which the busiest device waits."""
        return self._computation.bubble

    def busy(self, row: RowT) -> float:
        """Return the seconds in which a device, or those of a mesh, compute."""
        return self._computation.busy(row)

    def timeline(self, width: int = WIDTH) -> str:
        """Return the step as text: a row for each device or mesh.

        A column has the letter `F`, `B`, `I` or `W` of a forward or a backward or a part of it, `U` for an update, or a
        space.
        """
        return format_timeline(self._rows, self._end, width)

    def to_perfetto(self) -> str:
        """Return the timeline in the Trace Event Format, which https://ui.perfetto.dev opens."""
        rows = {**self._rows, **self._links}
        return trace_events({name: map(_traced, slices) for name, slices in rows.items()})

    def to_svg(self) -> str:
        """Return the timeline as a picture, with a row for each device and each link; a notebook displays it."""
        return timeline_svg({**self._rows, **self._links}, self._end)

    _repr_svg_ = to_svg

    @property
    def _end(self) -> float:
        """The seconds until the last slice ends."""
        every = [*self._rows.values(), *self._links.values()]
        return max((slices[-1].end for slices in every if slices), default=0.0)


def _traced(each: TimelineSlice) -> TraceSlice:
    return TraceSlice(each.label, each.start, each.seconds)
