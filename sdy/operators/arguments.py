"""Operator arguments that contain tensors: dictionaries, lists and tuples, with an Ellipsis for each tensor.

{"scale": ..., "eps": 1e-06}        a dictionary with one tensor
"""

from collections.abc import Iterator
from typing import Any

from sdy.type_helpers import is_dict, is_list, is_tuple


def leaves(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of the argument `name` in JAX's order, each with its path, as in `name['w'][0]`."""
    if is_container(value) and is_dict(value):
        for key in sorted(value):
            yield from leaves(f"{name}[{key!r}]", value[key])
    elif is_container(value) and (is_list(value) or is_tuple(value)):
        for index, each in enumerate(value):
            yield from leaves(f"{name}[{index}]", each)
    else:
        yield name, value


def is_container(value: object) -> bool:
    """Return whether `value` is a dictionary, list or tuple, not of a subclass."""
    return type(value) in (dict, list, tuple)


def holds_tensors(value: object) -> bool:
    """Return whether `value` contains a tensor, that is an Ellipsis."""
    return any(leaf is ... for _, leaf in leaves("", value))


def with_leaves(value: Any, new: Iterator[Any]) -> Any:
    """Return `value` with its leaves replaced by the values of `new`, in order."""
    if is_container(value) and is_dict(value):
        changed = {key: with_leaves(value[key], new) for key in sorted(value)}
        return {key: changed[key] for key in value}
    if is_container(value) and (is_list(value) or is_tuple(value)):
        return type(value)([with_leaves(each, new) for each in value])
    return next(new)


def literal_text(value: object) -> str:
    """Write an argument as an expression that `ast.literal_eval` reads."""
    if value is ...:
        return "..."
    if is_container(value) and is_dict(value):
        return "{" + ", ".join(f"{key!r}: {literal_text(each)}" for key, each in value.items()) + "}"
    if is_container(value) and is_list(value):
        return "[" + ", ".join(map(literal_text, value)) + "]"
    if is_container(value) and is_tuple(value):
        return f"({literal_text(value[0])},)" if len(value) == 1 else f"({', '.join(map(literal_text, value))})"
    if value in (float("inf"), float("-inf")):
        return "1e999" if value == float("inf") else "-1e999"
    return repr(value)
