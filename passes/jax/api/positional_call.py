"""Calls with static and keyword arguments, as calls of functions whose arguments are positional and not static."""

import inspect
from collections.abc import Hashable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

from sdy.type_helpers import Function

_STATIC = ("static_argnums", "static_argnames")
_DONATED = ("donate_argnums", "donate_argnames")


class PositionalCall(NamedTuple):
    """A call of `function(*arguments)`, and the options of `jax.jit` for it.

    Two calls of a function with equal `static` values have functions that compute the same.
    """

    function: Function[Any]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    static: Hashable = ()


def positional_call(
    fun: Function[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> PositionalCall:
    """Return the call `fun(*args, **kwargs)` with static values bound and other arguments positional.

    Args:
        fun: The function.
        args: The positional arguments.
        kwargs: The keyword arguments.
        options: Options of `jax.jit`; those for static and donated arguments are by the parameters of `fun`.

    Raises:
        TypeError: The arguments do not match the signature of `fun`.
    """
    if not kwargs and not any(name in options for name in _STATIC):
        return PositionalCall(fun, args, options)
    signature = inspect.signature(fun)
    given = signature.bind(*args, **kwargs).arguments
    names = list(signature.parameters)
    is_static, is_donated = (
        {names[position] for position in _positions(names, len(names), *map(options.get, pair))}
        for pair in (_STATIC, _DONATED)
    )
    static = {name: value for name, value in given.items() if name in is_static}
    dynamic = {name: value for name, value in given.items() if name not in is_static}

    @wraps(fun)
    def function(*values: Any) -> Any:
        by_name = {**static, **dict(zip(dynamic, values, strict=True))}
        bound = inspect.BoundArguments(signature, {name: by_name[name] for name in given})
        return fun(*bound.args, **bound.kwargs)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in dynamic]
    vars(function)["__signature__"] = inspect.Signature(parameters)
    others = {name: value for name, value in options.items() if name not in (*_STATIC, *_DONATED)}
    donated = tuple(index for index, name in enumerate(dynamic) if name in is_donated)
    return PositionalCall(
        function, tuple(dynamic.values()), {**others, "donate_argnums": donated}, (tuple(dynamic), *static.items())
    )


def static_positions(names: Sequence[str], count: int, options: Mapping[str, Any]) -> set[int]:
    """Return the indices of the static arguments, of `count` positional ones, of a function with these parameters.

    Args:
        names: The names of the parameters.
        count: The number of positional arguments.
        options: Options of `jax.jit`.
    """
    return _positions(names, count, *map(options.get, _STATIC))


def _positions(
    names: Sequence[str], count: int, numbers: int | Sequence[int] | None, selected: str | Sequence[str] | None
) -> set[int]:
    """Return the indices that `numbers`, some from the end of `count`, and the names `selected` stand for."""
    indices = [numbers] if isinstance(numbers, int) else numbers or ()
    by_name = {selected} if isinstance(selected, str) else set(selected or ())
    return {index % count for index in indices} | {index for index, name in enumerate(names) if name in by_name}
