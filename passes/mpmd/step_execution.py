"""Simulation of a partitioned MPMD program: its steps in time, and the memory of the devices of each mesh.

The devices of a mesh execute its fragments in the order of the steps, each as soon as its values are there. The link
from one mesh to another carries one value at a time. Values travel beside computation, or, on hardware without
asynchronous permutes, in the time of the sender after the fragment that computes them, and of the receiver before the
first fragment that reads them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sdy.passes.mpmd.steps import Call, Free, StepList, Transfer
from sdy.passes.mpmd.timeline import Timeline

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

    meshes: Timeline[str]
    """The fragments of each mesh."""
    links: Timeline[MeshLink]
    """The transfers of each link."""
    sent: Mapping[MeshLink, int]
    """The bytes on each link, of a device of the receiving mesh."""
    peaks: Mapping[str, int]
    """The peak memory of a device of each mesh, in bytes."""
    live: Sequence[Mapping[str, int]]
    """The bytes of the values on a device of each mesh after each step; a donated value is live until its release."""

    @property
    def end(self) -> float:
        """The seconds until the last fragment or transfer ends."""
        return max(self.meshes.end, self.links.end)


def execute(
    plan: StepList,
    costs: Mapping[str, FragmentCost],
    sizes: Sequence[int],
    transfer_seconds: Callable[[int], float],
    *,
    is_asynchronous: bool = True,
) -> StepExecution:
    """Simulate one step.

    Args:
        plan: The steps.
        costs: The cost of each callee.
        sizes: The bytes of a shard of each value.
        transfer_seconds: The seconds in which a link carries a number of bytes.
        is_asynchronous: Whether values travel beside computation.
    """
    meshes: Timeline[str] = Timeline()
    links: Timeline[MeshLink] = Timeline()
    sent: defaultdict[MeshLink, int] = defaultdict(int)
    live = {type_.mesh: 0 for type_ in plan.types}
    peaks = {**live}
    live_after: list[Mapping[str, int]] = []
    arrivals = dict.fromkeys(plan.inputs, 0.0)
    unreceived: dict[int, float] = {}
    """The seconds of the receiver for values that no fragment has read, without asynchronous transfers."""

    def hold(values: Sequence[int]) -> None:
        for value in values:
            live[plan.types[value].mesh] += sizes[value]

    hold(plan.inputs)
    for step in plan.steps:
        match step:
            case Call(callee, mesh, phase, inputs, outputs):
                cost = costs[callee]
                for value in inputs:
                    if seconds := unreceived.pop(value, 0.0):
                        meshes.append(mesh, f"value {value}", "-", arrivals[value], seconds)
                ready = max((arrivals[value] for value in inputs), default=0.0)
                arrivals |= dict.fromkeys(outputs, meshes.append(mesh, callee, phase, ready, cost.seconds))
                beside = live[mesh] - sum(sizes[value] for value in set(inputs))
                hold(outputs)
                peaks[mesh] = max(peaks[mesh], beside + cost.peak)
            case Transfer(inputs, outputs):
                for source, target in zip(inputs, outputs, strict=True):
                    link = (plan.types[source].mesh, plan.types[target].mesh)
                    arrivals[target] = arrivals[source]
                    if link[0] != link[1]:
                        seconds = transfer_seconds(sizes[target])
                        if not is_asynchronous:
                            meshes.append(link[0], f"value {target}", "-", arrivals[source], seconds)
                            unreceived[target] = seconds
                        arrivals[target] = links.append(link, f"value {target}", "-", arrivals[source], seconds)
                        sent[link] += sizes[target]
                hold(outputs)
            case Free(values):
                for value in values:
                    live[plan.types[value].mesh] -= sizes[value]
        if not isinstance(step, Call):
            peaks = {name: max(peak, live[name]) for name, peak in peaks.items()}
        live_after.append({**live})
    return StepExecution(meshes, links, sent, peaks, live_after)
