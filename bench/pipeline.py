"""Measured and simulated time of pipeline schedules, with stages that sleep.

    python bench/pipeline.py [--unit MILLISECONDS] [--turns N] [--schedules NAME ...]

Each device is a process, and results move through pipes. A forward sleeps for one unit, a backward for two, so that the
processes need no cores of their own: this measures the order of the units and the waiting between devices. The table
shows the least time of a step over the turns, and its ratio to the simulated one. The exit status is 1 if a ratio is
above 1.05.
"""

import argparse
import itertools
import multiprocessing
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from time import perf_counter, sleep

from sdy.passes.mpmd.schedules import SCHEDULES, Phase, Schedule, Unit, needed_by, schedule
from sdy.passes.mpmd.simulation import StageCost, simulate

DEVICES, MICROBATCHES, CHUNKS = (2, 4), (4, 8, 16, 32), 2
LIMIT = 1.05

Work = tuple[Sequence[Unit], int, StageCost, bool]
"""The units of a device, the number of all stages, the cost of each, and whether backwards are split."""
Ends = tuple[float, float]
"""The start of the first unit of a device and the end of its last one."""


def device_loop(
    number: int, count: int, commands: Connection, inputs: Sequence[Connection], outputs: Sequence[Connection]
) -> None:
    """Execute schedules as device `number` until a command is None.

    Args:
        number: The number of the device.
        count: The number of devices.
        commands: The connection to the main process.
        inputs: The ends of the pipes from the previous and from the next device.
        outputs: The ends of the pipes to the next and to the previous device.
    """
    while (work := commands.recv()) is not None:
        commands.send("ready")
        commands.recv()
        commands.send(execute(number, count, work, inputs, outputs))


def execute(number: int, count: int, work: Work, inputs: Sequence[Connection], outputs: Sequence[Connection]) -> Ends:
    """Execute the units of a device, each when the results that it reads have arrived."""
    units, stages, cost, splits = work
    arrived: set[Unit] = set()
    start = 0.0
    for unit in units:
        for needed in needed_by(unit, stages, splits):
            if needed.stage % count != number:
                from_next = needed.stage > unit.stage
                while needed not in arrived:
                    arrived.add(inputs[from_next].recv())
        start = start or perf_counter()
        sleep(cost.seconds(unit.phase))
        is_backward = unit.phase is not Phase.FORWARD
        reader = unit.stage - 1 if is_backward else unit.stage + 1
        if unit.phase is not Phase.WEIGHTS and 0 <= reader < stages:
            outputs[is_backward].send(unit)
    return start, perf_counter()


@contextmanager
def running_devices(count: int) -> Generator[Sequence[Connection]]:
    """Start a process for each device, and yield the connections to them."""
    forward, backward = ([multiprocessing.Pipe(duplex=False) for _ in range(count)] for _ in range(2))
    commands = [multiprocessing.Pipe() for _ in range(count)]
    processes = [
        multiprocessing.Process(
            target=device_loop,
            args=(
                number,
                count,
                commands[number][1],
                (forward[number - 1][0], backward[(number + 1) % count][0]),
                (forward[number][1], backward[number][1]),
            ),
            daemon=True,
        )
        for number in range(count)
    ]
    for process in processes:
        process.start()
    try:
        yield [ours for ours, _ in commands]
    finally:
        for (ours, _), process in zip(commands, processes, strict=True):
            ours.send(None)
            process.join()


def measured(order: Schedule, cost: StageCost, devices: Sequence[Connection]) -> float:
    """Return the seconds of a step: the longest time of a device from its first unit to its last."""
    for units, device in zip(order.devices, devices, strict=True):
        device.send((units, order.stages, cost, order.splits_backwards))
    for device in devices:
        device.recv()
    for device in devices:
        device.send("start")
    ends: list[Ends] = [device.recv() for device in devices]
    return max(end - start for start, end in ends)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unit", type=float, default=20.0, help="milliseconds of a forward (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="runs of each step (default: %(default)s)")
    parser.add_argument("--schedules", nargs="+", default=[*SCHEDULES], choices=[*SCHEDULES], metavar="NAME")
    arguments = parser.parse_args()
    worst = 0.0
    print("schedule     devices  microbatches  simulated    measured  ratio")
    for count in DEVICES:
        with running_devices(count) as devices:
            for name, microbatches in itertools.product(arguments.schedules, MICROBATCHES):
                chunks = CHUNKS if SCHEDULES[name].has_chunks else 1
                unit = arguments.unit / 1e3 / chunks
                order, cost = schedule(name, count, microbatches, chunks), StageCost(unit, 2 * unit)
                simulated = simulate(order, [cost] * order.stages).devices.period
                seconds = min(measured(order, cost, devices) for _ in range(arguments.turns))
                worst = max(worst, seconds / simulated)
                print(
                    f"{name:12} {count:7}  {microbatches:12}  {simulated * 1e3:6.0f} ms  {seconds * 1e3:7.1f} ms  "
                    f"{seconds / simulated:5.3f}"
                )
    print(f"largest ratio: {worst:.3f}; the limit is {LIMIT}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
