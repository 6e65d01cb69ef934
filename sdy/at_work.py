"""What is at work, told to whoever watches, as a tool that shows it on a terminal; nothing is where nobody does.

with watched(print), at_work("partition"):                      # partition
    for shard in one_by_one("block", graph, lambda: count):     # partition: block 1 of 8, and so on
        ...
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Watcher = Callable[[str], None]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher | None) -> Generator[None]:
    """Let `watcher` be told what is at work in the `with` block; None where nobody is to be."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watcher() -> Watcher | None:
    """Who watches here."""
    return _watcher.get()


@contextmanager
def at_work(what: str) -> Generator[None]:
    """Tell that `what` is at work in the `with` block; what is at work inside of it is told as a part of it."""
    tell = _watcher.get()
    if tell is None:
        yield
        return
    tell(what)
    with watched(lambda part: tell(f"{what}: {part}")):
        yield


def one_by_one(what: str, items: Iterable[T], count: Callable[[], int]) -> Iterator[T]:
    """`items`, each told as it is taken, as `block 3 of 8`; they are counted where somebody watches."""
    tell = _watcher.get()
    if tell is None:
        yield from items
        return
    of = f"of {count():,}"
    for number, item in enumerate(items, 1):
        tell(f"{what} {number:,} {of}")
        yield item
