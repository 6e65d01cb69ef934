"""Limits and texts of dimension sizes in error messages."""

from collections.abc import Iterable

from xdsl.dialects.builtin import DYNAMIC_INDEX

MAX_DIMENSIONS = 2**16
"""Attributes with an entry per dimension are rejected above this length, before the entries are expanded to a list."""
_MLIR_DYNAMIC = -(1 << 63)


def size_text(size: int) -> str:
    """Return a size as in MLIR's messages, where a dynamic one is -2^63."""
    return str(_MLIR_DYNAMIC if size == DYNAMIC_INDEX else size)


def sizes_text(sizes: Iterable[int]) -> str:
    """Return a comma-separated list of sizes, `4, 8`."""
    return ", ".join(map(size_text, sizes))
