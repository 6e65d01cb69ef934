"""Pipeline schedules: for each device, the order of its forwards and backwards of microbatches.

Device d of p has the stages d, d + p, d + 2p, ...: its chunks. In time, four microbatches under `1f1b` on four devices,
with backwards that take twice as long as forwards, are

    device 0 | FFFFFFFFFFFF                  BBBBBB   BBBBBB   BBBBBB   BBBBBB|
    device 1 |    FFFFFFFFF            BBBBBBFFFBBBBBB   BBBBBB   BBBBBB      |
    device 2 |       FFFFFF      BBBBBBFFFBBBBBBFFFBBBBBB   BBBBBB            |
    device 3 |          FFFBBBBBBFFFBBBBBBFFFBBBBBBFFFBBBBBB                  |

Sources: Huang et al., "GPipe" (2019); Narayanan et al., "Efficient large-scale language model training on GPU clusters
using Megatron-LM" (2021), for `1f1b` and `interleaved`; Qi et al., "Zero bubble pipeline parallelism" (2023), for
`zb-h1` and `zb-h2`. These split a backward into the gradient of the input, which the previous stage waits for, and the
gradients of the weights, which fill gaps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import NamedTuple


class Phase(StrEnum):
    """A part of the work on a microbatch."""

    FORWARD = "F"
    BACKWARD = "B"
    """The gradients of the input and of the weights."""
    INPUT = "I"
    """The gradient of the input only."""
    WEIGHTS = "W"
    """The gradients of the weights only."""


class Unit(NamedTuple):
    """The work of one stage on one microbatch in one phase."""

    phase: Phase
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.phase}{self.microbatch}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The units of each device of a pipeline, in order."""

    name: str
    devices: Sequence[Sequence[Unit]]
    microbatches: int
    chunks: int = 1
    """The number of stages of each device."""

    @property
    def stages(self) -> int:
        return len(self.devices) * self.chunks

    @property
    def splits_backwards(self) -> bool:
        """True if gradients of inputs and of weights are separate units."""
        return any(unit.phase is Phase.WEIGHTS for unit in self.devices[0])


def schedule(name: str, devices: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return the schedule `name`, a key of `SCHEDULES`.

    Raises:
        ValueError: There is no such schedule, or it does not fit the number of devices, microbatches or chunks.
    """
    kind = SCHEDULES.get(name)
    if kind is None:
        raise ValueError(f"there is no schedule '{name}'; the schedules are {', '.join(SCHEDULES)}")
    for what, number in (("devices", devices), ("microbatches", microbatches), ("chunks", chunks)):
        if number < 1:
            raise ValueError(f"schedule '{name}': the number of {what} is {number}; it must be at least 1")
    if chunks > 1 and not kind.has_chunks:
        several = ", ".join(each for each, other in SCHEDULES.items() if other.has_chunks)
        raise ValueError(
            f"schedule '{name}' has one stage a device, and there are {chunks * devices} stages on {devices} devices; "
            f"schedules with several stages a device are {several}"
        )
    shape = _Shape(name, devices, microbatches, chunks)
    return Schedule(name, [[*kind.units(shape, device)] for device in range(devices)], microbatches, chunks)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The sizes of a pipeline."""

    name: str
    devices: int
    microbatches: int
    chunks: int

    @property
    def round(self) -> int:
        """The number of microbatches that a device takes through one chunk before the next chunk."""
        rounds = max(1, self.microbatches // self.devices)
        if self.microbatches % rounds:
            fitting = -(-self.microbatches // self.devices) * self.devices
            raise ValueError(
                f"schedule '{self.name}': {self.microbatches} microbatches on {self.devices} devices are not a "
                f"multiple of their {rounds} rounds; {fitting} are"
            )
        return self.microbatches // rounds

    def units(self, phase: Phase, device: int) -> Iterator[Unit]:
        """Yield the units of a phase in rounds of microbatches: forwards by rising chunks, the others by falling."""
        chunks = range(self.chunks) if phase is Phase.FORWARD else range(self.chunks - 1, -1, -1)
        for first in range(0, self.microbatches, self.round):
            for chunk in chunks:
                for microbatch in range(first, first + self.round):
                    yield Unit(phase, chunk * self.devices + device, microbatch)


def _gpipe(shape: _Shape, device: int) -> Iterator[Unit]:
    """Yield all forwards, then all backwards."""
    yield from (Unit(Phase.FORWARD, device, each) for each in range(shape.microbatches))
    yield from (Unit(Phase.BACKWARD, device, each) for each in range(shape.microbatches))


def _circular(shape: _Shape, device: int) -> Iterator[Unit]:
    """Yield the units of `sdy.mpmd.circular`: all microbatches through each chunk, and the same in reverse."""
    if shape.microbatches < shape.devices:
        raise ValueError(
            f"schedule '{shape.name}': {shape.microbatches} microbatches are fewer than the {shape.devices} devices"
        )
    forwards = [
        Unit(Phase.FORWARD, chunk * shape.devices + device, microbatch)
        for chunk in range(shape.chunks)
        for microbatch in range(shape.microbatches)
    ]
    yield from forwards
    yield from (each._replace(phase=Phase.BACKWARD) for each in reversed(forwards))


def _one_forward_one_backward(shape: _Shape, device: int) -> Iterator[Unit]:
    """Yield forwards until the first backward can begin, then alternate: few activations are held."""
    forwards, backwards = (_in_order(shape, phase, device) for phase in (Phase.FORWARD, Phase.BACKWARD))
    return _alternating(forwards, backwards, shape.devices - 1 - device)


def _interleaved(shape: _Shape, device: int) -> Iterator[Unit]:
    """Yield 1F1B over chunks: a bubble has the length of a chunk instead of all stages of a device."""
    forwards, backwards = (shape.units(phase, device) for phase in (Phase.FORWARD, Phase.BACKWARD))
    return _alternating(forwards, backwards, (shape.chunks - 1) * shape.round + 2 * (shape.devices - 1 - device))


def _alternating(forwards: Iterator[Unit], backwards: Iterator[Unit], warmup: int) -> Iterator[Unit]:
    """Yield `warmup` forwards, then a forward and a backward in turn."""
    yield from islice(forwards, warmup)
    for backward in backwards:
        yield from islice(forwards, 1)
        yield backward


def _in_order(shape: _Shape, phase: Phase, stage: int) -> Iterator[Unit]:
    return (Unit(phase, stage, microbatch) for microbatch in range(shape.microbatches))


def _zero_bubble_h1(shape: _Shape, device: int) -> Iterator[Unit]:
    """Yield 1F1B with late gradients of weights: no device holds more than the first one of 1F1B."""
    return _split(shape, device, shape.devices - 1 - device, device)


def _zero_bubble_h2(shape: _Shape, device: int) -> Iterator[Unit]:
    """Yield forwards that fill the first bubble, and gradients of weights that fill the last: twice the activations."""
    return _split(shape, device, 2 * (shape.devices - 1 - device), 2 * device)


def _split(shape: _Shape, device: int, warmup: int, delay: int) -> Iterator[Unit]:
    """Yield `warmup` forwards, then forwards and gradients of inputs in turn; those of weights `delay` turns later."""
    forwards, weights = (_in_order(shape, phase, device) for phase in (Phase.FORWARD, Phase.WEIGHTS))
    yield from islice(forwards, warmup)
    for turn, backward in enumerate(_in_order(shape, Phase.INPUT, device)):
        yield from islice(forwards, 1)
        yield backward
        if turn >= delay:
            yield from islice(weights, 1)
    yield from weights


@dataclass(frozen=True, slots=True)
class Kind:
    """An entry of `SCHEDULES`."""

    units: Callable[[_Shape, int], Iterator[Unit]]
    """Yield the units of a device."""
    has_chunks: bool = False


SCHEDULES: Mapping[str, Kind] = {
    "gpipe": Kind(_gpipe),
    "1f1b": Kind(_one_forward_one_backward),
    "interleaved": Kind(_interleaved, has_chunks=True),
    "zb-h1": Kind(_zero_bubble_h1),
    "zb-h2": Kind(_zero_bubble_h2),
    "circular": Kind(_circular, has_chunks=True),
}
"""The schedules by name."""


def needed_by(unit: Unit, stages: int, splits_backwards: bool) -> Sequence[Unit]:
    """Return the units whose results `unit` reads; `stages` is the number of all stages."""
    phase, stage, microbatch = unit
    backward = Phase.INPUT if splits_backwards else Phase.BACKWARD
    if phase is Phase.FORWARD:
        return [Unit(phase, stage - 1, microbatch)] if stage else []
    if phase is Phase.WEIGHTS:
        return [Unit(backward, stage, microbatch)]
    after = [Unit(backward, stage + 1, microbatch)] if stage + 1 < stages else []
    return [Unit(Phase.FORWARD, stage, microbatch), *after]


def check(order: Schedule) -> None:
    """Check that each unit occurs once, on the device of its stage, and that no device waits forever.

    Raises:
        ValueError: A unit is missing, is there twice or on another device, or waits for a unit that comes later.
    """
    phases = [Phase.FORWARD, *([Phase.INPUT, Phase.WEIGHTS] if order.splits_backwards else [Phase.BACKWARD])]
    for device, units in enumerate(order.devices):
        wanted = {
            Unit(phase, stage, microbatch)
            for phase in phases
            for stage in range(device, order.stages, len(order.devices))
            for microbatch in range(order.microbatches)
        }
        for unit in units:
            if unit not in wanted:
                raise ValueError(f"schedule '{order.name}': device {device} must not execute {unit} (again)")
            wanted.remove(unit)
        if wanted:
            raise ValueError(f"schedule '{order.name}': device {device} does not execute {min(wanted)}")
    for _ in in_order_of_need(order):
        pass


def in_order_of_need(order: Schedule) -> Iterator[tuple[int, Unit]]:
    """Yield all units with their devices: each device's in its order, each after the units that it reads.

    Raises:
        ValueError: Each device with remaining units waits for another one.
    """
    splits = order.splits_backwards
    positions = [0] * len(order.devices)
    done: set[Unit] = set()
    progress = True
    while progress:
        progress = False
        for device, units in enumerate(order.devices):
            while positions[device] < len(units):
                unit = units[positions[device]]
                if not done.issuperset(needed_by(unit, order.stages, splits)):
                    break
                yield device, unit
                done.add(unit)
                positions[device] += 1
                progress = True
    for device, units in enumerate(order.devices):
        if positions[device] < len(units):
            unit = units[positions[device]]
            missing = next(each for each in needed_by(unit, order.stages, splits) if each not in done)
            raise ValueError(f"schedule '{order.name}': device {device} waits for {missing} before {unit}, in a cycle")
