"""Type guards for values of unknown type.

`isinstance(value, list)` narrows to a list of unknown elements, which strict type checkers reject; these narrow to
`Any`.
"""

from typing import Any, TypeGuard


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether `value` is a list."""
    return isinstance(value, list)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Return whether `value` is a tuple."""
    return isinstance(value, tuple)


def is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Return whether `value` is a dictionary."""
    return isinstance(value, dict)
