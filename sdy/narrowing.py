"""Whether a value of which nothing is known is a list, a tuple or a dictionary.

So that a type checker knows that nothing is known of what is in it.
"""

from typing import Any, TypeGuard


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether `value` is a list, of anything."""
    return isinstance(value, list)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether `value` is a tuple, of anything."""
    return isinstance(value, tuple)


def is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether `value` is a dictionary, of anything."""
    return isinstance(value, dict)
