"""What is to be told of, as a program of one device: whatever a person has at hand."""

from collections.abc import Sequence
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.callables import Function
from sdy.passes.jax.from_jax import from_jax
from sdy.passes.jax.jit import Jitted
from sdy.passes.jax.stages import Lowered
from sdy.passes.layouts import (
    AS_WRITTEN,
    PartitionedLayout,
    PropagatedLayout,
    cheapest,
    is_propagated,
    propagated_layouts,
)

Program = ModuleOp | Lowered | jax.stages.Lowered | Function[Any]
"""A module, what `step.lower(...)` returned, or a function, of `sdy.jit` or any other."""


def partitioned_program(program: Program, *args: Any, **kwargs: Any) -> PartitionedLayout:
    """A program with its shardings, and what one device runs, both as copies.

    Takes and raises what `propagated_program` does. Raises DiagnosticError where the program cannot be partitioned.
    """
    return cheapest(propagated_program(program, *args, **kwargs))


def propagated_program(program: Program, *args: Any, **kwargs: Any) -> Sequence[PropagatedLayout]:
    """A program with its shardings, as a copy where it is propagated here, in all the ways that there are.

    A function is for `args` and `kwargs`, arrays or `jax.ShapeDtypeStruct`s. What has not been propagated is. Raises
    TypeError for arguments of what has its arguments already, and DiagnosticError where the program cannot be
    propagated.
    """
    if isinstance(program, Jitted):
        return propagated_program(program.lower(*args, **kwargs))
    if not isinstance(program, Lowered | ModuleOp):
        return propagated_layouts(from_jax(program, *args, **kwargs))
    if args or kwargs:
        raise TypeError("a lowered program or a module has its arguments already: give it none")
    module = program if isinstance(program, ModuleOp) else program.module
    return [PropagatedLayout(AS_WRITTEN, module)] if is_propagated(module) else propagated_layouts(module.clone())
