"""Sizes: how many there are at most, and how messages have them."""

from collections.abc import Iterable

from xdsl.dialects.builtin import DYNAMIC_INDEX

MOST_DIMENSIONS = 2**16
"""Far more than any tensor has: what says something for each of so many is refused before it is listed."""
_MLIR_DYNAMIC = -(1 << 63)


def size_text(size: int) -> str:
    """A size as MLIR's messages have it, in which a dynamic one is a very negative number."""
    return str(_MLIR_DYNAMIC if size == DYNAMIC_INDEX else size)


def sizes_text(sizes: Iterable[int]) -> str:
    """`4, 8`."""
    return ", ".join(map(size_text, sizes))
