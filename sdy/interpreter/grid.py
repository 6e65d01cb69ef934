"""A grid of devices that run programs together, replicas by partitions, and meet in collectives.

One device computes at a time; it does so until it must wait for others, then the next one has its turn.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues
from xdsl.ir import Operation

from sdy.diagnostics import op_error
from sdy.interpreter.fibers import Fiber
from sdy.interpreter.values import Array


class DeviceId(NamedTuple):
    """The place of a device in the grid."""

    replica: int
    partition: int


Group = tuple[DeviceId, ...]
Results = PythonValues

_DEVICE, _NEW = "device", "new"


@dataclass
class Device:
    """A device as the program that it runs sees it."""

    id: DeviceId
    grid: "Grid"
    fiber: Fiber[Results]
    meetings: Counter[Hashable] = field(default_factory=Counter[Hashable])
    random: np.random.Generator = field(default_factory=partial(np.random.default_rng, 0))

    def meet(self, op: Operation, kind: Hashable, group: Group, values: PythonValues) -> dict[DeviceId, PythonValues]:
        """What each device of `group` brings to its next meeting of this kind. Raises DiagnosticError if some never do.

        Devices that run different programs meet where the kind and the group are the same.
        """
        self.meetings[kind, group] += 1
        key = (kind, group, self.meetings[kind, group])
        brought = self.grid.meetings[key]
        brought[self.id] = values
        self.grid.news += 1
        self._wait(op, lambda: len(brought) == len(group))
        self.grid.meetings.pop(key, None)
        return brought

    def send(self, channel: Hashable, values: PythonValues) -> None:
        """Put `values` into a channel."""
        self.grid.channels[channel].append(values)
        self.grid.news += 1

    def receive(self, op: Operation, channel: Hashable) -> PythonValues:
        """Take what came first into a channel. Raises DiagnosticError if nothing ever comes."""
        waiting = self.grid.channels[channel]
        self._wait(op, lambda: bool(waiting))
        return waiting.popleft()

    def _wait(self, op: Operation, until: Callable[[], bool]) -> None:
        while not until():
            if self.grid.stuck:
                raise op_error(
                    op, f"device {tuple(self.id)} waits here for devices that have ended or wait for something else"
                )
            self.fiber.pause()


@dataclass
class Grid:
    """`replicas` times `partitions` devices; `infeed` are the values that come in from outside, in order."""

    replicas: int
    partitions: int
    infeed: deque[Callable[[Interpreter], Results]] = field(default_factory=deque[Callable[[Interpreter], Results]])
    meetings: defaultdict[Hashable, dict[DeviceId, PythonValues]] = field(
        default_factory=lambda: defaultdict[Hashable, dict[DeviceId, PythonValues]](dict)
    )
    channels: defaultdict[Hashable, deque[PythonValues]] = field(
        default_factory=lambda: defaultdict[Hashable, deque[PythonValues]](deque)
    )
    probes: dict[str, list[Array]] = field(default_factory=dict[str, list[Array]])
    news: int = 0
    stuck: bool = False

    def run(self, programs: Mapping[DeviceId, Callable[[Device], Results]]) -> dict[DeviceId, Results]:
        """The results of all programs, run together. Raises what a program raises."""
        fibers = {id_: Fiber[Results](partial(self._run_program, id_, program)) for id_, program in programs.items()}
        try:
            while running := [fiber for fiber in fibers.values() if not fiber.ended]:
                before = self.news
                for fiber in running:
                    fiber.resume()
                self.stuck = self.news == before and not any(fiber.ended for fiber in running)
            return {id_: fiber.result() for id_, fiber in fibers.items()}
        finally:
            for fiber in fibers.values():
                fiber.abandon()

    def _run_program(self, id_: DeviceId, program: Callable[[Device], Results], fiber: Fiber[Results]) -> Results:
        # Each thread has its own setting; what overflows or is not a number is the program's affair.
        with np.errstate(all="ignore"):
            return program(Device(id_, self, fiber))

    def cross_replica(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Groups of replicas, for each partition."""
        return [
            tuple(DeviceId(replica, partition) for replica in group)
            for group in groups
            for partition in range(self.partitions)
        ]

    def cross_partition(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Groups of partitions, in each replica."""
        return [
            tuple(DeviceId(replica, partition) for partition in group)
            for group in groups
            for replica in range(self.replicas)
        ]

    def cross_replica_and_partition(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Groups of replicas with all of their partitions."""
        return [
            tuple(DeviceId(replica, partition) for partition in range(self.partitions) for replica in group)
            for group in groups
        ]

    def flattened(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Groups of devices that are numbered through, replica by replica."""
        return [tuple(DeviceId(*divmod(number, self.partitions)) for number in group) for group in groups]


def set_device(interpreter: Interpreter, device: Device, new: Callable[[Device], Interpreter]) -> None:
    """Let `interpreter` run the program of `device`; `new` makes one like it for another device."""
    interpreter.set_data(InterpreterFunctions, _DEVICE, device)
    interpreter.set_data(InterpreterFunctions, _NEW, new)


def device_of(interpreter: Interpreter) -> Device:
    """The device whose program `interpreter` runs."""
    return interpreter.get_data(InterpreterFunctions, _DEVICE, _missing)


def interpreter_of(device: Device, like: Interpreter) -> Interpreter:
    """An interpreter of the same module as `like` for the program of `device`."""
    return like.get_data(InterpreterFunctions, _NEW, _missing)(device)


def _missing() -> Any:
    raise AssertionError("an interpreter runs the program of a device")
