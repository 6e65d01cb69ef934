"""Functions that take turns: each is a greenlet, of which one runs at a time.

A device's program waits in the midst of nested loops and calls for what other devices have to say. Whoever has a fiber
resumes it; it runs until it pauses or ends. So the order in which devices compute is the same in each run.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from greenlet import greenlet

ResultT = TypeVar("ResultT")


class Fiber(Generic[ResultT]):
    """`function`, not yet begun; it is given the fiber, so that it can pause it."""

    def __init__(self, function: "Callable[[Fiber[ResultT]], ResultT]"):
        self._greenlet = greenlet(function)
        self._result: ResultT | None = None

    @property
    def ended(self) -> bool:
        """Whether the function has returned or raised."""
        return self._greenlet.dead

    def resume(self) -> None:
        """Let it run until it pauses or ends. Raises what it raises."""
        # Whoever resumes it is who it returns to, which need not be who made it.
        self._greenlet.parent = greenlet.getcurrent()
        result = self._greenlet.switch(*(() if self._greenlet else (self,)))
        if self.ended:
            self._result = result

    def pause(self) -> None:
        """Wait, inside of the function, until it is resumed."""
        resumer = self._greenlet.parent
        assert resumer is not None
        resumer.switch()

    def abandon(self) -> None:
        """End it where it pauses."""
        if not self.ended:
            self._greenlet.throw()

    def result(self) -> ResultT:
        """What the function, which has ended, has returned."""
        assert self.ended
        return self._result  # pyright: ignore[reportReturnType]
