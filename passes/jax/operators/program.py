"""Lowering and analysis of functions of JAX arrays."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.array_types import array_type
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.jax.jax_internals import equations_of

_SEES_ALL_ELEMENTS = {"pure_callback", "while"}
"""Effect-free primitives that observe all elements, including those that no result depends on."""


def program_of(function: Callable[..., Any], types: Sequence[Attribute]) -> ModuleOp:
    """Lower `function` for arrays of these types on one device."""
    arrays = _arrays(types)
    with _of_width(arrays):
        return from_jax(jax.jit(function, keep_unused=True), *arrays)


def refusal_of(function: Callable[..., Any], types: Sequence[Attribute]) -> str | None:
    """Return the error message of `function` for arrays of these types, or None if it accepts them."""
    arrays = _arrays(types)
    try:
        with _of_width(arrays):
            jax.eval_shape(function, *arrays)
    except Exception as problem:  # user functions can raise any error
        return str(problem) or type(problem).__name__
    return None


def sees_all_elements(function: Callable[..., Any], types: Sequence[Attribute]) -> bool:
    """Return true if `function` has effects, callbacks, or loops with a data-dependent trip count."""
    arrays = _arrays(types)
    with _of_width(arrays):
        jaxpr = jax.make_jaxpr(function)(*arrays).jaxpr
    return bool(jaxpr.effects) or any(each.primitive.name in _SEES_ALL_ELEMENTS for each in equations_of(jaxpr))


def _arrays(types: Sequence[Attribute]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(*array_type(type_, None)) for type_ in types]


def _of_width(arrays: Sequence[jax.ShapeDtypeStruct]) -> AbstractContextManager[None]:
    """Return a context that enables 64-bit types if any of `arrays` has one."""
    wide = any(array.dtype.itemsize == 8 and array.dtype.kind in "iuf" for array in arrays)
    return jax.enable_x64(True) if wide else nullcontext()
