"""Temporary folders that are removed after an error and after SIGTERM, too."""

import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_ATTEMPTS = 100
_SECONDS_BETWEEN_ATTEMPTS = 0.02


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Generator[Path]:
    """Create a folder for the `with` block.

    Args:
        prefix: The beginning of its name.
        parent: The folder that it is in; None is the system's folder of temporary files.

    Yields:
        The folder.

    Raises:
        SystemExit: The process gets SIGTERM.
    """
    with _exit_on_termination():
        folder: Path | None = None
        try:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            yield folder
        finally:
            if folder is not None:
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, even if SIGTERM arrives meanwhile, or a thread of Zarr still writes a chunk."""
    termination: SystemExit | None = None
    for _ in range(_ATTEMPTS):
        try:
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
        except SystemExit as exit_:
            termination = exit_
    if termination is not None:
        raise termination


@contextmanager
def _exit_on_termination() -> Generator[None]:
    """Raise SystemExit on the first SIGTERM in the `with` block, unless the process handles it already."""

    def leave(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
