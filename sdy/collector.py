"""Python's garbage collector, paused while a module is read, changed or printed.

Operations, blocks and values refer to each other in cycles, and all of them stay: time and again the collector would go
through everything there is, half the time of a pass, to find nothing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused() -> Generator[None]:
    """Do not collect garbage in the `with` block, or the function that this decorates; cycles wait until after it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
