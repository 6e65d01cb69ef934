"""Type of a function that accepts any arguments and may be a lambda."""

from collections.abc import Callable
from typing import Any, Concatenate, Protocol, TypeAlias, TypeVar

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
