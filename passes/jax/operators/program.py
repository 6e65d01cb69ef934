"""A function of jax arrays as a module."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.array_types import array_type
from sdy.passes.jax.from_jax import from_jax


def program_of(function: Callable[..., Any], types: Sequence[Attribute]) -> ModuleOp:
    """The module of `function` for arrays of these types, on one device."""
    arrays = [jax.ShapeDtypeStruct(*array_type(type_, None)) for type_ in types]
    wide = any(array.dtype.itemsize == 8 and array.dtype.kind in "iuf" for array in arrays)
    with jax.enable_x64(True) if wide else nullcontext():
        return from_jax(jax.jit(function, keep_unused=True), *arrays)
