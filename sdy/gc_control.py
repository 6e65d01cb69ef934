"""Control of Python's garbage collector: paused while a module is read, verified, changed or printed.

Operations, blocks and values refer to each other in cycles and stay alive during a pass. Each run of the collector
would traverse all of them, half the time of a pass, and free nothing. Modules that became garbage are collected when
the next module is read, if memory has grown by half since the last collection.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

_was_frozen = False
"""True if the process has frozen objects, as servers do; sticky, since counting frozen objects takes long."""

_GROWTH = 1.5
"""Growth of allocated memory since the last collection that triggers the next one."""

_blocks_left = 0
"""Allocated memory blocks after the last collection, or at the first call of `collect_if_grown`; 0 before."""


@contextmanager
def paused(*, leaves_little: bool = False) -> Generator[None]:
    """Disable the garbage collector in the `with` block or the decorated function.

    At the end, all live objects move to the collector's oldest generation, so that the next allocation does not trigger
    a traversal of them. Objects that the process has frozen stay frozen.

    Args:
        leaves_little: Whether most objects that the block allocates are garbage at its end. A run over the youngest
            generation then collects them, a millisecond or two for a small program; otherwise they stay until memory
            has grown by half.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if leaves_little:
                gc.collect(0)
            _move_to_oldest_generation()
            gc.enable()


def _move_to_oldest_generation() -> None:
    global _was_frozen
    _was_frozen = _was_frozen or gc.get_freeze_count() > 0
    if not _was_frozen:
        gc.freeze()
        gc.unfreeze()


def collect_if_grown() -> None:
    """Collect garbage if memory has grown by half since the last collection; call it before reading a program.

    Python's collector seldom traverses its oldest generation, which holds earlier programs. Does nothing while the
    collector is disabled.
    """
    global _blocks_left
    allocated = sys.getallocatedblocks()
    if _blocks_left and allocated > _GROWTH * _blocks_left and gc.isenabled():
        gc.collect()
        _blocks_left = sys.getallocatedblocks()
    elif not _blocks_left:
        _blocks_left = allocated
