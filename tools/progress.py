"""Progress line on the terminal, for work that takes more than a second."""

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
"""Seconds until the line is shown."""

_DRAWN_PER_SECOND = 8
_TERMINATED = 128 + signal.SIGTERM
"""Exit status after SIGTERM."""


@contextmanager
def progress(delay: float = _LONG) -> Generator[None]:
    """Show the current task and the elapsed time on standard error once the `with` block has taken `delay` seconds.

    Nothing is shown unless standard error is a terminal. Diagnostics that are printed in the block appear above the
    line; results must not be printed in it. SIGTERM ends the process after the terminal is restored.
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
    """The progress line, which is updated more often than it is drawn."""

    def __init__(self) -> None:
        self._what = ""
        self._begin = monotonic()
        self._lock = Lock()
        """Guards `_live`: a timer thread shows the line, and the main thread clears it."""
        self._live: Live | None = None
        self._is_over = False

    def tell(self, what: str) -> None:
        self._what = what

    def show(self) -> None:
        # Imported lazily: short commands do not show the line.
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

        from sdy.formatting import escape_lines

        return Text(f"{monotonic() - self._begin:6.0f} s  {escape_lines(self._what)}")
