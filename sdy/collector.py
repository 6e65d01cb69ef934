"""Python's garbage collector, paused while a module is read, verified, changed or printed.

Operations, blocks and values refer to each other in cycles, and all of them stay: time and again the collector would go
through everything there is, half the time of a pass, to find nothing. A module that nobody has any more is found when
another one is read, if memory has grown by half since then.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

_was_frozen = False
"""Whether the process has frozen objects, as servers do; once it had, they are not counted again, which takes long."""

_GROWTH = 1.5
"""What is allocated, to what was left of it the last time, when it is worth while to look for garbage."""

_blocks_left = 0
"""The blocks of memory that Python had when garbage was last collected here, or might first have been; 0 before."""


@contextmanager
def paused(*, leaves_little: bool = False) -> Generator[None]:
    """Do not collect garbage in the `with` block, or the function that this decorates; cycles wait until after it.

    What there is at the end counts as old from then on, so that it is not looked through as soon as the next object is
    made. Objects that the process has frozen stay so.

    Of a block that `leaves_little` of all that it makes, the rest is collected at the end: modules that nobody has any
    more are found among what was made in it alone, which takes a millisecond or two for a small program. Otherwise they
    are kept until memory has grown by half.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if leaves_little:
                gc.collect(0)
            _let_all_be_old()
            gc.enable()


def _let_all_be_old() -> None:
    global _was_frozen
    _was_frozen = _was_frozen or gc.get_freeze_count() > 0
    if not _was_frozen:
        gc.freeze()
        gc.unfreeze()


def collect_if_grown() -> None:
    """Collect garbage if memory has grown by half since the last time; to be called where a program begins.

    Of objects that were made old Python's collector takes no notice by itself, and those of programs before may be
    garbage by now. It does nothing while the collector is off.
    """
    global _blocks_left
    allocated = sys.getallocatedblocks()
    if _blocks_left and allocated > _GROWTH * _blocks_left and gc.isenabled():
        gc.collect()
        _blocks_left = sys.getallocatedblocks()
    elif not _blocks_left:
        _blocks_left = allocated
