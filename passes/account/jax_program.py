"""Programs of jax that are to be told of; this is loaded where one is given, so that modules need no jax."""

from collections.abc import Sequence
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.callables import Function
from sdy.passes.jax.from_jax import from_jax
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.layouts import PropagatedLayout, layouts_of, propagated_layouts

JaxProgram = Lowered | jax.stages.Lowered | Function[Any]
"""What `step.lower(...)` returned, or a function, of `sdy.jit` or any other."""


def lowered(program: JaxProgram, *args: Any, **kwargs: Any) -> Lowered | ModuleOp:
    """What `sdy.jit` makes of a program of its own; of another, a module that is still to be propagated.

    Raises TypeError for arguments of what has its arguments already.
    """
    if isinstance(program, Lowerable):
        return program.lower(*args, **kwargs)
    if not isinstance(program, Lowered):
        return from_jax(program, *args, **kwargs)
    if args or kwargs:
        raise TypeError("a lowered program has its arguments already: give it none")
    return program


def propagated_jax_program(program: JaxProgram, *args: Any, **kwargs: Any) -> Sequence[PropagatedLayout]:
    """The module of a program, in all the ways in which it is propagated."""
    found = lowered(program, *args, **kwargs)
    return propagated_layouts(found) if isinstance(found, ModuleOp) else layouts_of(found.module)
