"""The type of a function that may be given as a lambda, and that takes whatever it takes."""

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
"""A function of anything to an `R`.

`Callable[..., R]` is the same to whoever calls it. But the parameters of a lambda have the types that are expected of
them, one by one, and `...` expects none; here each of up to six is `Any`.
"""
