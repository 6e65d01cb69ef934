"""What the benchmarks share: the program that grows with its layers, and times that can be compared."""

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
"""What is timed; it is given what its preparation returned."""


def lowered(layers: int) -> str:
    """The transformer with so many layers, as JAX lowers it."""
    command = [sys.executable, str(_TRANSFORMER), "--layers", str(layers)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def nothing() -> None:
    """The preparation of what needs none."""


class Stages:
    """Processor seconds spent in each stage, those of all threads together: they do not depend on who else computes."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Time the `with` block as the stage `name`."""
        start = process_time()
        yield
        self.seconds[name] = process_time() - start


def least_seconds_of_stages(activities: Mapping[str, Callable[[Stages], object]]) -> dict[str, dict[str, float]]:
    """The least that each stage of each activity takes; the activities take turns and time their stages.

    Nothing that jax keeps from a turn is there in the next.
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
            made = activity(stages)
            for stage, seconds in stages.seconds.items():
                least[name][stage] = min(seconds, least[name].get(stage, seconds))
            del made
    return least


def least_seconds(
    activities: Mapping[str, tuple[Callable[[], Any], Activity]], *, collecting: bool = True, turns: int = _TURNS
) -> dict[str, float]:
    """The shortest time that each activity takes after its preparation, which is not timed; they take so many turns.

    Python's garbage collector runs before each activity, and in it as it does for a user, unless not `collecting`.
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
            made = activity(prepared)
            times[name].append(perf_counter() - start)
            gc.enable()
            del made, prepared
    return {name: min(measured) for name, measured in times.items()}
