"""Propagation and partitioning of the inputs of the analysis functions: functions, lowered programs and modules."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.layouts import (
    PartitionedLayout,
    PropagatedLayout,
    cheapest,
    layouts_of,
    partitioner_for,
    propagated_layouts,
)

if TYPE_CHECKING:
    from sdy.passes.jax.stages import JaxProgram

Program: TypeAlias = "ModuleOp | JaxProgram"
"""A module, the result of `step.lower(...)`, or a function (of `sdy.jit` or any other)."""


def partitioned_program(program: Program, *args: Any, **kwargs: Any) -> PartitionedLayout:
    """Propagate and partition a program, on copies, and return the cheapest layout.

    Args:
        program: A function, a lowered program or a module.
        *args: The positional arguments of a function.
        **kwargs: The keyword arguments of a function.

    Raises:
        TypeError: Arguments are given for a lowered program or a module.
        DiagnosticError: The program cannot be propagated or partitioned.
    """
    if isinstance(program, ModuleOp):
        return cheapest(propagated_program(program, *args, **kwargs))
    from sdy.passes.jax.stages import Lowered, lowered

    stage = lowered(program, *args, **kwargs)
    if isinstance(stage, Lowered):
        return cheapest(layouts_of(stage.module), partitioner_for(stage.memory_limit))
    return cheapest(propagated_layouts(stage))


def propagated_program(program: Program, *args: Any, **kwargs: Any) -> Sequence[PropagatedLayout]:
    """Return the propagated layouts of a program: several if both the program and its HLO form are propagated.

    A module that has not been propagated is propagated on a copy.

    Args:
        program: A function, a lowered program or a module.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: The keyword arguments of a function.

    Raises:
        TypeError: Arguments are given for a lowered program or a module.
        DiagnosticError: The program cannot be propagated.
    """
    if not isinstance(program, ModuleOp):
        from sdy.passes.jax.stages import lowered

        stage = lowered(program, *args, **kwargs)
        return propagated_layouts(stage) if isinstance(stage, ModuleOp) else layouts_of(stage.module)
    if args or kwargs:
        raise TypeError("a module already has its arguments: pass none")
    return layouts_of(program)
