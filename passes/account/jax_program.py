"""JAX functions and lowered programs as inputs of `sdy.account`, `sdy.report` and `sdy.lint`.

This module is imported only for such inputs, so that analyses of modules do not import jax.
"""

from collections.abc import Sequence
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.layouts import PropagatedLayout, layouts_of, propagated_layouts
from sdy.type_helpers import Function

JaxProgram = Lowered | jax.stages.Lowered | Function[Any]
"""The result of `step.lower(...)`, or a function (of `sdy.jit` or any other)."""


def lowered(program: JaxProgram, *args: Any, **kwargs: Any) -> Lowered | ModuleOp:
    """Lower a program: one of `sdy.jit` to its `Lowered`, any other to a module that has not been propagated.

    Raises:
        TypeError: Arguments are given for a lowered program.
    """
    if isinstance(program, Lowerable):
        return program.lower(*args, **kwargs)
    if not isinstance(program, Lowered):
        return from_jax(program, *args, **kwargs)
    if args or kwargs:
        raise TypeError("a lowered program already has its arguments: pass none")
    return program


def propagated_jax_program(program: JaxProgram, *args: Any, **kwargs: Any) -> Sequence[PropagatedLayout]:
    """Return the propagated layouts of a program."""
    stage = lowered(program, *args, **kwargs)
    return propagated_layouts(stage) if isinstance(stage, ModuleOp) else layouts_of(stage.module)
