"""A function of JAX arrays as a module, and what is known of it without one."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.array_types import array_type
from sdy.passes.jax.equations import equations_of
from sdy.passes.jax.from_jax import from_jax

_SEES_ALL_ELEMENTS = {"pure_callback", "while"}
"""The primitives without effects for which an element matters that no result depends on."""


def program_of(function: Callable[..., Any], types: Sequence[Attribute]) -> ModuleOp:
    """The module of `function` for arrays of these types, on one device."""
    arrays = _arrays(types)
    with _of_width(arrays):
        return from_jax(jax.jit(function, keep_unused=True), *arrays)


def refusal_of(function: Callable[..., Any], types: Sequence[Attribute]) -> str | None:
    """Return what `function` raises for arrays of these types, None if it takes them."""
    arrays = _arrays(types)
    try:
        with _of_width(arrays):
            jax.eval_shape(function, *arrays)
    except Exception as problem:  # whatever a function of a person raises
        return str(problem) or type(problem).__name__
    return None


def sees_all_elements(function: Callable[..., Any], types: Sequence[Attribute]) -> bool:
    """Return whether `function` has effects, callbacks, or loops of a number of steps that it computes."""
    arrays = _arrays(types)
    with _of_width(arrays):
        jaxpr = jax.make_jaxpr(function)(*arrays).jaxpr
    return bool(jaxpr.effects) or any(each.primitive.name in _SEES_ALL_ELEMENTS for each in equations_of(jaxpr))


def _arrays(types: Sequence[Attribute]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(*array_type(type_, None)) for type_ in types]


def _of_width(arrays: Sequence[jax.ShapeDtypeStruct]) -> AbstractContextManager[None]:
    """Lets arrays have elements of 64 bits, where any of `arrays` has."""
    wide = any(array.dtype.itemsize == 8 and array.dtype.kind in "iuf" for array in arrays)
    return jax.enable_x64(True) if wide else nullcontext()
