"""Whether a value of which nothing is known is a list or a tuple, so that a type checker knows that of its elements."""

from typing import Any, TypeGuard


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether `value` is a list, of anything."""
    return isinstance(value, list)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether `value` is a tuple, of anything."""
    return isinstance(value, tuple)
