"""Functions that take turns: each on a thread of its own, of which one runs at a time.

A device's program waits in the midst of nested loops and calls for what other devices have to say. Whoever has a fiber
resumes it; it runs until it pauses or ends. So the order in which devices compute is the same in each run.
"""

from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Generic, TypeVar

ResultT = TypeVar("ResultT")


class _Abandoned(BaseException):
    """Ends a fiber that nobody will resume."""


class Fiber(Generic[ResultT]):
    """`function`, not yet begun; it is given the fiber, so that it can pause it."""

    def __init__(self, function: "Callable[[Fiber[ResultT]], ResultT]"):
        self._function = function
        self._turn, self._paused = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, daemon=True)
        self._problem: BaseException | None = None
        self._abandoned = False
        self.ended = False
        self._result: ResultT | None = None

    def resume(self) -> None:
        """Let it run until it pauses or ends. Raises what it raises."""
        if self._thread.ident is None:
            self._thread.start()
        self._turn.release()
        self._paused.acquire()
        if self._problem is not None and not self._abandoned:
            raise self._problem

    def pause(self) -> None:
        """Wait, inside of the function, until it is resumed."""
        self._paused.release()
        self._turn.acquire()
        if self._abandoned:
            raise _Abandoned

    def abandon(self) -> None:
        """End it where it pauses."""
        self._abandoned = True
        if self._thread.ident is not None and not self.ended:
            self.resume()

    def result(self) -> ResultT:
        """What the function, which has ended, has returned."""
        assert self.ended
        return self._result  # pyright: ignore[reportReturnType]

    def _run(self) -> None:
        self._turn.acquire()
        try:
            self._result = self._function(self)
        except BaseException as problem:
            self._problem = problem
        self.ended = True
        self._paused.release()
