"""Jitted functions with bound arguments: `functools.partial`, `eqx.Partial` and `nnx.cached_partial`.

A call passes the bound arguments to the jitted function, which traces them as it does the others. Tracing the partial
function would make constants of them, and Flax refuses a model that is not an argument.
"""

import inspect
from functools import partial
from typing import Any

_Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def with_bound_arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
    """Return the jitted function of a partial one with all its arguments; any other function with those given."""
    call: _Call = function, args, kwargs
    while (inner := _inner_call(*call)) is not None:
        call = inner
    return call if hasattr(call[0], "lower") else (function, args, kwargs)


def _inner_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
    if isinstance(function, partial) or _is_partial_of_equinox(function):
        return function.func, (*function.args, *args), {**function.keywords, **kwargs}
    if inspect.isfunction(function) and function.__code__.co_name == "cache_args_wrapper":  # of nnx.cached_partial
        variables = inspect.getclosurevars(function).nonlocals
        return variables["f"], (*variables["cached_args"], *args), kwargs
    return None


def _is_partial_of_equinox(function: Any) -> bool:
    return any(base.__module__.startswith("equinox") and base.__name__ == "Partial" for base in type(function).__mro__)
