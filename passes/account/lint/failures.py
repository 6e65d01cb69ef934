"""Rules and trials that raise an exception, a fault of sdy: the findings of the other rules are given all the same."""

import logging
import traceback
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from sdy.diagnostics import warn

_T = TypeVar("_T")

_LOGGER = logging.getLogger("sdy")

_raised: ContextVar[bool] = ContextVar("raised", default=False)
"""True if exceptions of rules and trials are raised."""


@contextmanager
def raised_failures(raised: bool = True) -> Generator[None]:
    """Raise the exceptions of rules and trials in the `with` block, as in all tests; warn of them if not `raised`."""
    token = _raised.set(raised)
    try:
        yield
    finally:
        _raised.reset(token)


class Failures:
    """The rules that failed, which do not run again, and the fixes that could not be tried."""

    def __init__(self) -> None:
        self.rules: dict[str, str] = {}
        """The exception of each rule that failed."""
        self._fixes: dict[str, str] = {}
        """The first fix whose trial raised each exception."""

    def of_rule(self, rule: str, compute: Callable[[], Sequence[_T]]) -> Sequence[_T]:
        """Return what `rule` computes; nothing if that raises an exception, or if the rule has failed before."""
        if rule in self.rules:
            return ()
        try:
            return compute()
        except Exception as problem:
            self.rules[rule] = _caught(problem)
            return ()

    def add_fix(self, fix: str, problem: Exception) -> None:
        """Record that the trial of a fix raised an exception."""
        self._fixes.setdefault(_caught(problem), fix)

    def report(self, wanted: Container[str]) -> list[str]:
        """Warn once of each of the `wanted` rules that failed, and of each exception of a trial; return these rules."""
        failed = [rule for rule in self.rules if rule in wanted]
        for rule in failed:
            warn(None, f"lint rule {rule} failed, its findings are missing: {self.rules[rule]}; please report this")
        for problem, fix in self._fixes.items():
            warn(None, f"lint could not try a fix, to {fix}: {problem}; please report this")
        return failed


def _caught(problem: Exception) -> str:
    """Log the traceback of an exception, and return its type, its message and its place."""
    if _raised.get():
        raise problem
    _LOGGER.debug("lint caught an exception", exc_info=problem)
    last = traceback.extract_tb(problem.__traceback__)[-1]
    message = f": {problem}" if str(problem) else ""
    return f"{type(problem).__name__}{message} ({last.filename.rpartition('/')[2]}:{last.lineno})"
