"""Progress reporting: names of running tasks, sent to a reporter function if one is set.

with report_to(print), task("partition"):                  # partition
    for shard in track("block", graph, lambda: count):     # partition: block 1 of 8, and so on
        ...
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Reporter = Callable[[str], None]

_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


@contextmanager
def report_to(reporter: Reporter | None) -> Generator[None]:
    """Send progress reports of the `with` block to `reporter`; None turns reports off."""
    before = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(before)


def current_reporter() -> Reporter | None:
    """Return the reporter of the innermost `report_to`, if any."""
    return _reporter.get()


@contextmanager
def task(name: str) -> Generator[None]:
    """Report that the task `name` runs in the `with` block; reports of nested tasks are prefixed with `name`."""
    report = _reporter.get()
    if report is None:
        yield
        return
    report(name)
    with report_to(lambda subtask: report(f"{name}: {subtask}")):
        yield


def track(name: str, items: Iterable[T], count: Callable[[], int]) -> Iterator[T]:
    """Yield `items`, reporting each as `block 3 of 8`.

    Args:
        name: Noun for one item, such as `block`.
        items: The items to yield.
        count: Returns the number of items; called only if a reporter is set.
    """
    report = _reporter.get()
    if report is None:
        yield from items
        return
    of = f"of {count():,}"
    for number, item in enumerate(items, 1):
        report(f"{name} {number:,} {of}")
        yield item
