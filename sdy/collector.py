"""Python's garbage collector, paused while a module is read, verified, changed or printed.

Operations, blocks and values refer to each other in cycles, and all of them stay: time and again the collector would go
through everything there is, half the time of a pass, to find nothing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_was_frozen = False
"""Whether the process has frozen objects, as servers do; once it had, they are not counted again, which takes long."""


@contextmanager
def paused() -> Generator[None]:
    """Do not collect garbage in the `with` block, or the function that this decorates; cycles wait until after it.

    What there is at the end counts as old from then on, so that it is not looked through as soon as the next object is
    made, but when much has been added to it. Objects that the process has frozen stay so.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _let_all_be_old()
            gc.enable()


def _let_all_be_old() -> None:
    global _was_frozen
    _was_frozen = _was_frozen or gc.get_freeze_count() > 0
    if not _was_frozen:
        gc.freeze()
        gc.unfreeze()
