"""Simulation of a partitioned MPMD program: its steps in time, and the memory of the devices of each mesh.

The devices of a mesh execute its fragments in the order of the steps, each as soon as its values are there. Values
travel beside computation; the link from one mesh to another carries one value at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sdy.passes.mpmd.steps import Call, Free, StepList, Transfer
from sdy.passes.mpmd.timeline import TimelineSlice

MeshLink = tuple[str, str]
"""The sending and the receiving mesh."""


class FragmentCost(NamedTuple):
    """The cost of a fragment on a device of its mesh."""

    seconds: float
    peak: int
    """The peak memory in bytes, with arguments and results."""


@dataclass(frozen=True)
class StepExecution:
    """The simulated execution of one step."""

    meshes: Mapping[str, Sequence[TimelineSlice]]
    """The fragments of each mesh, in order."""
    links: Mapping[MeshLink, Sequence[TimelineSlice]]
    """The transfers of each link, in order."""
    sent: Mapping[MeshLink, int]
    """The bytes on each link, of a device of the receiving mesh."""
    peaks: Mapping[str, int]
    """The peak memory of a device of each mesh, in bytes."""
    live: Sequence[Mapping[str, int]]
    """The bytes of the values on a device of each mesh after each step; a donated value is live until its release."""

    @property
    def end(self) -> float:
        """The seconds until the last fragment or transfer ends."""
        return max((each.end for slices in (*self.meshes.values(), *self.links.values()) for each in slices), default=0)

    @property
    def period(self) -> float:
        """The seconds between the starts of consecutive steps that no barrier separates."""
        return max((slices[-1].end - slices[0].start for slices in self.meshes.values() if slices), default=0.0)


def execute(
    plan: StepList,
    costs: Mapping[str, FragmentCost],
    sizes: Sequence[int],
    transfer_seconds: Callable[[int], float],
) -> StepExecution:
    """Simulate one step.

    Args:
        plan: The steps.
        costs: The cost of each callee.
        sizes: The bytes of a shard of each value.
        transfer_seconds: The seconds in which a link carries a number of bytes.
    """
    meshes: dict[str, list[TimelineSlice]] = {type_.mesh: [] for type_ in plan.types}
    links: defaultdict[MeshLink, list[TimelineSlice]] = defaultdict(list)
    sent: defaultdict[MeshLink, int] = defaultdict(int)
    live = dict.fromkeys(meshes, 0)
    peaks = dict.fromkeys(meshes, 0)
    live_after: list[Mapping[str, int]] = []
    arrivals = dict.fromkeys(plan.inputs, 0.0)

    def hold(values: Sequence[int]) -> None:
        for value in values:
            live[plan.types[value].mesh] += sizes[value]

    hold(plan.inputs)
    for step in plan.steps:
        match step:
            case Call(callee, mesh, phase, inputs, outputs):
                row, cost = meshes[mesh], costs[callee]
                start = max([row[-1].end if row else 0.0, *(arrivals[value] for value in inputs)])
                row.append(TimelineSlice(callee, phase, start, cost.seconds))
                arrivals |= dict.fromkeys(outputs, row[-1].end)
                beside = live[mesh] - sum(sizes[value] for value in set(inputs))
                hold(outputs)
                peaks[mesh] = max(peaks[mesh], beside + cost.peak)
            case Transfer(inputs, outputs):
                for source, target in zip(inputs, outputs, strict=True):
                    names = (plan.types[source].mesh, plan.types[target].mesh)
                    arrivals[target] = arrivals[source]
                    if names[0] != names[1]:
                        link = links[names]
                        start = max(arrivals[source], link[-1].end if link else 0.0)
                        link.append(TimelineSlice(f"value {target}", "-", start, transfer_seconds(sizes[target])))
                        sent[names] += sizes[target]
                        arrivals[target] = link[-1].end
                hold(outputs)
            case Free(values):
                for value in values:
                    live[plan.types[value].mesh] -= sizes[value]
        if not isinstance(step, Call):
            peaks = {name: max(peak, live[name]) for name, peak in peaks.items()}
        live_after.append({**live})
    return StepExecution(meshes, links, sent, peaks, live_after)
