"""A line on a terminal that says what is at work, once that takes more than a second; it is gone when it is done."""

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING

from sdy.progress import report_to

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_LONG = 1.0
"""Seconds that work takes before it is shown."""

_DRAWN_PER_SECOND = 8
_TERMINATED = 128 + signal.SIGTERM
"""The exit status of a process that was asked to end."""


@contextmanager
def progress(delay: float = _LONG) -> Generator[None]:
    """Show on standard error what is at work in the `with` block, when it has taken `delay` seconds, and how long.

    Where that is no terminal, nothing is. Diagnostics may be printed meanwhile, and stand above; results may not, as
    the line would be among them. Asked to end by SIGTERM, the process does so with its terminal as it was.
    """
    if not sys.stderr.isatty():
        yield
        return
    line = _Line()
    timer = Timer(delay, line.show)
    timer.daemon = True
    before = signal.signal(signal.SIGTERM, _end)
    timer.start()
    try:
        with report_to(line.tell):
            yield
    finally:
        timer.cancel()
        line.clear()
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: object) -> None:
    sys.exit(_TERMINATED)


class _Line:
    """The line; it is told what is at work far more often than it is drawn."""

    def __init__(self) -> None:
        self._what = ""
        self._begin = monotonic()
        self._lock = Lock()
        """The line is shown by another thread than that which clears it."""
        self._live: Live | None = None
        self._is_over = False

    def tell(self, what: str) -> None:
        self._what = what

    def show(self) -> None:
        # Whoever does not wait does not wait for rich either.
        from rich.live import Live

        from sdy.tools.terminal import Terminal

        with self._lock:
            if self._is_over:
                return
            self._live = Live(
                self,
                console=Terminal(stderr=True),
                refresh_per_second=_DRAWN_PER_SECOND,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start(refresh=True)

    def clear(self) -> None:
        with self._lock:
            self._is_over = True
            if self._live:
                self._live.stop()

    def __rich__(self) -> "Text":
        from rich.text import Text

        from sdy.shown_text import shown_lines

        return Text(f"{monotonic() - self._begin:6.0f} s  {shown_lines(self._what)}")
