"""Coroutines based on greenlets, which can pause inside nested calls.

The program of a device waits for other devices inside of nested loops and calls. A scheduler resumes a fiber, which
runs until it pauses or ends. The order in which devices compute is therefore deterministic.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from greenlet import greenlet

ResultT = TypeVar("ResultT")


class Fiber(Generic[ResultT]):
    """A coroutine that runs `function`, which gets the fiber as its argument so that it can pause."""

    def __init__(self, function: "Callable[[Fiber[ResultT]], ResultT]"):
        self._greenlet = greenlet(function)
        self._result: ResultT | None = None

    @property
    def ended(self) -> bool:
        """True if the function has returned or raised."""
        return self._greenlet.dead

    def resume(self) -> None:
        """Run the function until it pauses or ends; exceptions of the function propagate."""
        # Control returns to the greenlet that resumes the fiber, which need not be the one that created it.
        self._greenlet.parent = greenlet.getcurrent()
        result = self._greenlet.switch(*(() if self._greenlet else (self,)))
        if self.ended:
            self._result = result

    def pause(self) -> None:
        """Pause until the next `resume`; called inside of the function."""
        resumer = self._greenlet.parent
        assert resumer is not None
        resumer.switch()

    def abandon(self) -> None:
        """Terminate a paused function."""
        if not self.ended:
            self._greenlet.throw()

    def result(self) -> ResultT:
        """Return the result of the function, which must have ended."""
        assert self.ended
        return self._result  # pyright: ignore[reportReturnType]
