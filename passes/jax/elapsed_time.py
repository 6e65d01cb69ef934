"""How long a step of compiling a function takes, told where and as jax tells it of its own steps."""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager

import jax

_LOGGER = logging.getLogger(__name__)


@contextmanager
def elapsed_time_logged(step: str, function: str) -> Generator[None]:
    """Log how many seconds the `step` of compiling `function` takes, with `jax_log_compiles` as a warning.

    The logger is below `logging.getLogger("sdy")`.
    """
    start = time.perf_counter()
    yield
    is_wanted: bool = jax.config.jax_log_compiles  # pyright: ignore[reportAttributeAccessIssue]
    level = logging.WARNING if is_wanted else logging.INFO
    _LOGGER.log(level, "Finished %s of jit(%s) in %.9f sec", step, function, time.perf_counter() - start)
