"""Compile times, logged as jax logs those of its own steps."""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager

import jax

_LOGGER = logging.getLogger(__name__)


@contextmanager
def elapsed_time_logged(step: str, function: str) -> Generator[None]:
    """Log the seconds of a `step` of compiling `function` below the logger "sdy"; a warning with `jax_log_compiles`."""
    start = time.perf_counter()
    yield
    is_wanted: bool = jax.config.jax_log_compiles  # pyright: ignore[reportAttributeAccessIssue]
    level = logging.WARNING if is_wanted else logging.INFO
    _LOGGER.log(level, "Finished %s of jit(%s) in %.9f sec", step, function, time.perf_counter() - start)
