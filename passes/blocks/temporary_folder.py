"""Temporary folders that are removed after an error and after SIGTERM, too; after SIGKILL, by the next run.

A process locks its folders, and the system releases the locks when the process ends.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_ATTEMPTS = 100
_SECONDS_BETWEEN_ATTEMPTS = 0.02


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Generator[Path]:
    """Create a folder for the `with` block, and remove those of processes that were killed.

    Args:
        prefix: The beginning of its name, which no other program uses.
        parent: The folder that it is in; None is the system's folder of temporary files.

    Yields:
        The folder.

    Raises:
        SystemExit: The process gets SIGTERM.
    """
    with _exit_on_termination():
        folder: Path | None = None
        lock: int | None = None
        try:
            folder, lock = _create(prefix, parent)
            yield folder
        finally:
            if lock is not None:
                os.close(lock)
            if folder is not None:
                _remove(folder)


def folder_until_exit(prefix: str) -> Path:
    """Create a folder among the system's temporary files that this process removes when it ends."""
    folder, _ = _create(prefix, None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_abandoned(prefix: str, parent: Path) -> None:
    """Remove the folders whose names begin with `prefix` and whose processes have ended."""
    for folder in parent.glob(f"{prefix}*"):
        lock = _lock(folder, wait=False)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _create(prefix: str, parent: Path | None) -> tuple[Path, int | None]:
    """Remove abandoned folders, and create and lock a new one; return it with the lock."""
    directory = Path(tempfile.gettempdir() if parent is None else parent)
    remove_abandoned(prefix, directory)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=directory))
        lock = _lock(folder, wait=True)
        if folder.exists():  # else another process removed it before it was locked
            return folder, lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path, wait: bool) -> int | None:
    """Lock a folder until this process ends, and return a file descriptor; None if that is not possible.

    Args:
        folder: The folder.
        wait: Whether to wait for another process that has locked it.
    """
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


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
