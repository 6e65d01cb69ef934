"""Types for strict type checkers: a function of any parameters, and guards for values of unknown type.

`isinstance(value, list)` narrows to a list of unknown elements, which strict type checkers reject; the guards narrow to
`Any`.
"""

from collections.abc import Callable
from typing import Any, Concatenate, Protocol, TypeAlias, TypeGuard, TypeVar

_Result = TypeVar("_Result", covariant=True)


class _Any(Protocol[_Result]):
    def __call__(self, *args: Any, **kwargs: Any) -> _Result: ...


_R = TypeVar("_R")

Function: TypeAlias = (
    _Any[_R]
    | Callable[Concatenate[Any, ...], _R]
    | Callable[Concatenate[Any, Any, ...], _R]
    | Callable[Concatenate[Any, Any, Any, ...], _R]
    | Callable[Concatenate[Any, Any, Any, Any, ...], _R]
    | Callable[Concatenate[Any, Any, Any, Any, Any, ...], _R]
    | Callable[Concatenate[Any, Any, Any, Any, Any, Any, ...], _R]
)
"""A function that returns an `R`, with any parameters.

Equivalent to `Callable[..., R]` for callers. A type checker infers the types of a lambda's parameters from the expected
type, and `...` gives none; here each of up to six parameters is `Any`.
"""


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether `value` is a list."""
    return isinstance(value, list)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Return whether `value` is a tuple."""
    return isinstance(value, tuple)


def is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Return whether `value` is a dictionary."""
    return isinstance(value, dict)
