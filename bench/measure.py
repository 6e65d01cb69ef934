"""Shared parts of the benchmarks: a program of scalable size, and timers."""

import gc
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import jax

_TRANSFORMER = Path(__file__).parent.parent / "examples" / "transformer.py"
_TURNS = 5
_PATIENCE = 60.0
"""No new turn begins after this many seconds."""

Activity = Callable[[Any], object]
"""A timed function, called with the result of its preparation."""


def lowered(layers: int) -> str:
    """Return the text of examples/transformer.py with this number of layers."""
    command = [sys.executable, str(_TRANSFORMER), "--layers", str(layers)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def nothing() -> None:
    """An empty preparation."""


class Stages:
    """Processor seconds of each stage, summed over all threads; they do not depend on the load of the machine."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Time the `with` block as the stage `name`."""
        start = process_time()
        yield
        self.seconds[name] = process_time() - start


def least_seconds_of_stages(activities: Mapping[str, Callable[[Stages], object]]) -> dict[str, dict[str, float]]:
    """Return the minimal seconds of each stage of each activity. The activities take turns and time their stages.

    jax's caches are cleared before each turn.
    """
    least: dict[str, dict[str, float]] = {name: {} for name in activities}
    begin = perf_counter()
    for turn in range(_TURNS):
        if turn and perf_counter() - begin > _PATIENCE:
            break
        for name, activity in activities.items():
            jax.clear_caches()
            gc.collect()
            stages = Stages()
            result = activity(stages)
            for stage, seconds in stages.seconds.items():
                least[name][stage] = min(seconds, least[name].get(stage, seconds))
            del result
    return least


def least_seconds(
    activities: Mapping[str, tuple[Callable[[], Any], Activity]], *, collecting: bool = True, turns: int = _TURNS
) -> dict[str, float]:
    """Return the minimal seconds of each activity, after its untimed preparation. The activities take `turns` turns.

    Python's garbage collector runs before each activity, and during it only if `collecting`.
    """
    times: dict[str, list[float]] = {name: [] for name in activities}
    begin = perf_counter()
    for turn in range(turns):
        if turn and perf_counter() - begin > _PATIENCE:
            break
        for name, (prepare, activity) in activities.items():
            prepared = prepare()
            gc.collect()
            if not collecting:
                gc.disable()
            start = perf_counter()
            result = activity(prepared)
            times[name].append(perf_counter() - start)
            gc.enable()
            del result, prepared
    return {name: min(measured) for name, measured in times.items()}
