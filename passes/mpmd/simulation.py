"""Simulation of a pipeline: a device executes its units in order, each as soon as the values that it reads are there.

Values travel beside computation. The link from one device to another carries one value at a time, in the order in which
they are computed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sdy.passes.mpmd.schedules import Phase, Schedule, Unit, in_order_of_need, needed_by
from sdy.passes.mpmd.timeline import Timeline

Link = tuple[int, int]
"""The sending and the receiving device."""


@dataclass(frozen=True, slots=True)
class StageCost:
    """The cost of a stage for one microbatch, on one device of the stage.

    Args:
        forward: Seconds of the forward.
        backward: Seconds of the backward.
        weights: The part of `backward` for the gradients of weights, in seconds; half of it by default.
        held: Bytes of activations from the forward to the end of the backward.
        sent: Bytes of the result, which the next stage receives, and whose gradient comes back.
        state: Bytes of parameters, gradients and optimizer state.
    """

    forward: float
    backward: float
    weights: float | None = None
    held: float = 0.0
    sent: float = 0.0
    state: float = 0.0

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "weights", "held", "sent", "state"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise ValueError(f"StageCost: '{name}' is {value}; it must be at least 0")
        if self.weights is not None and self.weights > self.backward:
            raise ValueError(f"StageCost: 'weights' is {self.weights}, more than all of 'backward', {self.backward}")

    def seconds(self, phase: Phase) -> float:
        """Return the seconds of a phase."""
        weights = self.backward / 2 if self.weights is None else self.weights
        return {
            Phase.FORWARD: self.forward,
            Phase.BACKWARD: self.backward,
            Phase.INPUT: self.backward - weights,
            Phase.WEIGHTS: weights,
        }[phase]

    def __add__(self, other: "StageCost") -> "StageCost":
        """Return the cost of a stage that consists of this one and the next."""
        return StageCost(
            self.forward + other.forward,
            self.backward + other.backward,
            self.seconds(Phase.WEIGHTS) + other.seconds(Phase.WEIGHTS),
            self.held + other.held,
            other.sent,
            self.state + other.state,
        )


@dataclass(frozen=True, slots=True)
class Execution:
    """The simulated execution of one step."""

    devices: Timeline[int]
    """The units of each device."""
    links: Timeline[Link]
    """The transfers of each link, by the unit whose result it carries."""
    bytes: Mapping[Link, float]
    """The bytes on each link, of one device of a stage."""


def simulate(order: Schedule, stages: Sequence[StageCost], transfers: Mapping[int, float] | None = None) -> Execution:
    """Simulate one step.

    Args:
        order: The schedule.
        stages: The cost of each stage.
        transfers: For each stage, the seconds that its result takes to another device, or its gradient back; 0 by
            default.
    """
    count, splits = len(order.devices), order.splits_backwards
    devices: Timeline[int] = Timeline()
    links: Timeline[Link] = Timeline()
    sent: defaultdict[Link, float] = defaultdict(float)
    arrivals: dict[Unit, float] = {}
    """The time at which the device that reads a unit's result has it."""
    for device, unit in in_order_of_need(order):
        needed = [each for each in needed_by(unit, order.stages, splits) if each.stage != unit.stage]
        ready = max((arrivals[each] for each in needed), default=0.0)
        end = devices.append(device, str(unit), unit.phase, ready, stages[unit.stage].seconds(unit.phase))
        reader = unit.stage + (1 if unit.phase is Phase.FORWARD else -1)
        link = (device, reader % count)
        if unit.phase is not Phase.WEIGHTS and 0 <= reader < order.stages and link[0] != link[1]:
            boundary = min(unit.stage, reader)
            end = links.append(link, str(unit), unit.phase, end, (transfers or {}).get(boundary, 0.0))
            sent[link] += stages[boundary].sent
        arrivals[unit] = end
    return Execution(devices, links, sent)


def held(order: Schedule, device: int, costs: Sequence[float]) -> float:
    """Return the peak of the activations that a device holds, where stage s holds `costs[s]` a microbatch."""
    signs = {Phase.FORWARD: 1, Phase.WEIGHTS if order.splits_backwards else Phase.BACKWARD: -1}
    return max(accumulate(signs.get(unit.phase, 0) * costs[unit.stage] for unit in order.devices[device]))
