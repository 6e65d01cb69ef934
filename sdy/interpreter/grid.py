"""A grid of devices, replicas by partitions, that run programs concurrently and communicate in collectives.

One device computes at a time, until it must wait for others; then the next one is scheduled.
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
    """The position of a device in the grid."""

    replica: int
    partition: int


Group = tuple[DeviceId, ...]
Results = PythonValues

_DEVICE, _NEW = "device", "new"


@dataclass
class Device:
    """The state of a device that its program can access."""

    id: DeviceId
    grid: "Grid"
    fiber: Fiber[Results]
    exchanges: Counter[Hashable] = field(default_factory=Counter[Hashable])
    """The number of exchanges so far, by kind and group."""
    random: np.random.Generator = field(default_factory=partial(np.random.default_rng, 0))

    def exchange(
        self, op: Operation, kind: Hashable, group: Group, values: PythonValues
    ) -> dict[DeviceId, PythonValues]:
        """Exchange values with the other devices of a group, and wait for all of them.

        Devices with different programs take part in the same exchange if its kind and group are equal.

        Args:
            op: The operation, for errors.
            kind: The kind of the exchange.
            group: The participating devices.
            values: The values of this device.

        Returns:
            The values of each device of the group.

        Raises:
            DiagnosticError: Some device never takes part.
        """
        self.exchanges[kind, group] += 1
        key = (kind, group, self.exchanges[kind, group])
        exchanged = self.grid.exchanges[key]
        exchanged[self.id] = values
        self.grid.events += 1
        self._wait(op, lambda: len(exchanged) == len(group))
        self.grid.exchanges.pop(key, None)
        return exchanged

    def send(self, channel: Hashable, values: PythonValues) -> None:
        """Append `values` to a channel."""
        self.grid.channels[channel].append(values)
        self.grid.events += 1

    def receive(self, op: Operation, channel: Hashable) -> PythonValues:
        """Wait for and remove the first values of a channel.

        Raises:
            DiagnosticError: The channel stays empty.
        """
        waiting = self.grid.channels[channel]
        self._wait(op, lambda: bool(waiting))
        return waiting.popleft()

    def _wait(self, op: Operation, until: Callable[[], bool]) -> None:
        while not until():
            if self.grid.stuck:
                raise op_error(
                    op, f"deadlock: device {tuple(self.id)} waits for devices that have ended or wait elsewhere"
                )
            self.fiber.pause()


@dataclass
class Grid:
    """A grid of `replicas` times `partitions` devices, and the state of their communication."""

    replicas: int
    partitions: int
    infeed: deque[Callable[[Interpreter], Results]] = field(default_factory=deque[Callable[[Interpreter], Results]])
    """The infeed values in order, each as a function that computes them."""
    exchanges: defaultdict[Hashable, dict[DeviceId, PythonValues]] = field(
        default_factory=lambda: defaultdict[Hashable, dict[DeviceId, PythonValues]](dict)
    )
    """The values of the pending exchanges."""
    channels: defaultdict[Hashable, deque[PythonValues]] = field(
        default_factory=lambda: defaultdict[Hashable, deque[PythonValues]](deque)
    )
    """The values sent and not yet received, by channel."""
    probes: dict[str, list[Array]] = field(default_factory=dict[str, list[Array]])
    """The values recorded by each probe."""
    events: int = 0
    """The number of communication events so far; no new event in a round means a deadlock."""
    stuck: bool = False
    """True if the devices are in a deadlock."""

    def run(self, programs: Mapping[DeviceId, Callable[[Device], Results]]) -> dict[DeviceId, Results]:
        """Run the programs of all devices concurrently, and return their results; exceptions propagate."""
        fibers = {id_: Fiber[Results](partial(self._run_program, id_, program)) for id_, program in programs.items()}
        try:
            while running := [fiber for fiber in fibers.values() if not fiber.ended]:
                before = self.events
                for fiber in running:
                    fiber.resume()
                self.stuck = self.events == before and not any(fiber.ended for fiber in running)
            return {id_: fiber.result() for id_, fiber in fibers.items()}
        finally:
            for fiber in fibers.values():
                fiber.abandon()

    def _run_program(self, id_: DeviceId, program: Callable[[Device], Results], fiber: Fiber[Results]) -> Results:
        # Overflow and NaN are part of the semantics.
        with np.errstate(all="ignore"):
            return program(Device(id_, self, fiber))

    def cross_replica(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Return groups of replicas, one for each partition."""
        return [
            tuple(DeviceId(replica, partition) for replica in group)
            for group in groups
            for partition in range(self.partitions)
        ]

    def cross_partition(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Return groups of partitions, one in each replica."""
        return [
            tuple(DeviceId(replica, partition) for partition in group)
            for group in groups
            for replica in range(self.replicas)
        ]

    def cross_replica_and_partition(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Return groups of replicas with all of their partitions."""
        return [
            tuple(DeviceId(replica, partition) for partition in range(self.partitions) for replica in group)
            for group in groups
        ]

    def flattened(self, groups: Sequence[Sequence[int]]) -> list[Group]:
        """Return groups of global device ids, numbered replica by replica."""
        return [tuple(DeviceId(*divmod(number, self.partitions)) for number in group) for group in groups]


def set_device(interpreter: Interpreter, device: Device, new: Callable[[Device], Interpreter]) -> None:
    """Assign `interpreter` to `device`; `new` creates an interpreter of the same module for another device."""
    interpreter.set_data(InterpreterFunctions, _DEVICE, device)
    interpreter.set_data(InterpreterFunctions, _NEW, new)


def device_of(interpreter: Interpreter) -> Device:
    """Return the device of `interpreter`."""
    return interpreter.get_data(InterpreterFunctions, _DEVICE, _missing)


def interpreter_of(device: Device, like: Interpreter) -> Interpreter:
    """Create an interpreter of the same module as `like` for `device`."""
    return like.get_data(InterpreterFunctions, _NEW, _missing)(device)


def _missing() -> Any:
    raise AssertionError("an interpreter runs the program of a device")
