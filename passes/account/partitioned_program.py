"""What is to be told of, as a program of one device: whatever a person has at hand."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.layouts import PartitionedLayout, PropagatedLayout, cheapest, layouts_of

if TYPE_CHECKING:
    from sdy.passes.account.jax_program import JaxProgram

Program: TypeAlias = "ModuleOp | JaxProgram"
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
    if not isinstance(program, ModuleOp):
        from sdy.passes.account.jax_program import propagated_jax_program

        return propagated_jax_program(program, *args, **kwargs)
    if args or kwargs:
        raise TypeError("a module has its arguments already: give it none")
    return layouts_of(program)
