"""Type annotations of the parameters of an operator's function."""

import inspect
import types
from typing import Any, Union, get_args, get_origin

import jax
import numpy as np

_SINGLE = (jax.Array, np.ndarray, bool, int, float, complex, str, type(None))


def may_be_none(parameter: inspect.Parameter) -> bool:
    """Return true if a parameter may be None, by its default or its type."""
    if parameter.default is None or isinstance(parameter.annotation, str):
        return parameter.default is None or any(word in parameter.annotation for word in ("None", "Optional"))
    return type(None) in _alternatives(parameter.annotation)


def may_be_container(parameter: inspect.Parameter) -> bool:
    """Return true if a parameter may be a dict, list or tuple of arrays, each with its own input in the annotation."""
    if isinstance(parameter.annotation, str):
        words = {each.__name__ for each in _SINGLE} | {"None", "jax.Array", "np.ndarray", "numpy.ndarray"}
        return any(word.strip() not in words for word in parameter.annotation.split("|"))
    return any(alternative not in _SINGLE for alternative in _alternatives(parameter.annotation))


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; any other type as the only member."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
