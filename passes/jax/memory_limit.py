"""Compilation within a memory limit, by the memory that XLA reports.

Rematerialization keeps the predicted memory below the limit. XLA may need more, for example for transposed copies of
the operands of products. Then the program is rematerialized for a smaller limit, and compiled again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import jax

from sdy.diagnostics import Diagnostic, MemoryLimitWarning, capture, report, warn
from sdy.formatting import format_bytes
from sdy.passes.jax.jax_internals import Executable, executable_of

ExecutableT = TypeVar("ExecutableT", bound=Executable)

_MAX_ATTEMPTS = 5
"""Maximum number of limits for which a program is compiled."""

_MIN_STEP = 0.005
"""The least difference of the first two limits, as a fraction of the memory limit; it then doubles."""

_LEAST_SLOPE = 0.7
"""The least slope with which the next limit is extrapolated."""

_LIMITS: WeakKeyDictionary[Executable, int] = WeakKeyDictionary()
"""The limits of rematerialization with which the executables were compiled."""


def peak_bytes_of(compiled: Executable) -> int | None:
    """Return the peak memory of each device in bytes, with aliased memory once; None if XLA does not report it."""
    memory = compiled.memory_analysis()
    if memory is None:
        return None
    lent = memory.alias_size_in_bytes
    return memory.argument_size_in_bytes + memory.output_size_in_bytes - lent + memory.temp_size_in_bytes


def rematerialization_limit(compiled: jax.stages.Compiled) -> int | None:
    """Return the limit of rematerialization of a `jax.stages.Compiled`; None if it was compiled without limit."""
    return _LIMITS.get(executable_of(compiled))


@dataclass(frozen=True)
class _Attempt(Generic[ExecutableT]):
    """A program compiled with a limit of rematerialization."""

    executable: ExecutableT
    limit: int
    memory: int
    reported: list[Diagnostic]


def compile_within(
    limit: int, compile_for: Callable[[int], tuple[ExecutableT, int] | None], function: str
) -> ExecutableT | None:
    """Compile a program so that XLA needs at most `limit` bytes.

    Each attempt lowers the limit of rematerialization below the predicted memory by the bytes that XLA needs beyond
    `limit`, or more if the last attempt saved fewer bytes than it lowered the limit, until rematerialization does not
    reach a limit. The first program that fits is kept, or else the one that needs the least memory, with a warning.

    Args:
        limit: The most bytes that a device may use.
        compile_for: Compiles the program, rematerialized for a limit, and predicts its memory in bytes; returns None
            for a program that is not sharded.
        function: The name of the function.
    """
    attempts: list[_Attempt[ExecutableT]] = []
    target, step = limit, int(limit * _MIN_STEP)
    while len(attempts) < _MAX_ATTEMPTS and target > 0:
        with capture() as reported:
            compiled = compile_for(target)
        if compiled is None:
            return None
        executable, predicted = compiled
        memory = peak_bytes_of(executable) or 0
        attempts.append(_Attempt(executable, target, memory, reported))
        if memory <= limit or predicted > target:
            break
        # Below the predicted memory, other values are recomputed.
        target = min(target - max(int((memory - limit) / _slope(attempts)), step), predicted - 1)
        step *= 2
    best = min(attempts, key=lambda each: max(each.memory, limit))
    for diagnostic in best.reported:
        report(diagnostic)
    if best.memory > limit:
        warn(
            None,
            f"'{function}' needs {format_bytes(best.memory)} of memory as compiled by XLA, although values are "
            f"recomputed: {format_bytes(best.memory - limit)} more than {format_bytes(limit)}; split its "
            "arguments along more axes, or raise the limit",
            category=MemoryLimitWarning,
        )
    _LIMITS[best.executable] = best.limit
    return best.executable


def _slope(attempts: Sequence[_Attempt[ExecutableT]]) -> float:
    """Return the bytes that the last attempt saved for each byte by which it lowered the limit, within bounds."""
    if len(attempts) == 1:
        return 1.0
    before, last = attempts[-2:]
    return min(max((before.memory - last.memory) / (before.limit - last.limit), _LEAST_SLOPE), 1.0)
