"""Propagation and partitioning of the inputs of the analysis functions: functions, lowered programs, modules, files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.driver import read
from sdy.passes.layouts import PartitionedLayout, PropagatedLayout, cheapest, layouts_of, partitioner_for
from sdy.text import parse

if TYPE_CHECKING:
    from sdy.passes.jax.bindings.from_jax import JaxProgram
    from sdy.passes.jax.stages import LoweredProgram

Program: TypeAlias = "ModuleOp | JaxProgram | str | Path"
"""A module, a file of one, the result of `step.lower(...)`, a program of `sdy.compiler`, or a function."""


def program_of(program: Program, *args: Any, **kwargs: Any) -> "ModuleOp | LoweredProgram":
    """Return a program as a module, or lowered by `sdy.jit` or in a block of `sdy.compiler`.

    Args:
        program: A function, a lowered program, a module, or a file of StableHLO text or bytecode.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: The keyword arguments of a function.

    Raises:
        TypeError: Arguments are given for a program that is not a function.
        DiagnosticError: The file cannot be read or parsed.
    """
    if isinstance(program, str | Path):
        source = read(str(program))
        program = parse(source.text, source.name)
    if not isinstance(program, ModuleOp):
        from sdy.passes.jax.stages import lowered

        return lowered(program, *args, **kwargs)
    if args or kwargs:
        raise TypeError("a module already has its arguments: pass none")
    return program


def partitioned_program(program: Program, *args: Any, **kwargs: Any) -> PartitionedLayout:
    """Propagate and partition a program, on copies, and return the cheapest layout.

    Args:
        program: A function, a lowered program, a module or a file.
        *args: The positional arguments of a function.
        **kwargs: The keyword arguments of a function.

    Raises:
        TypeError: Arguments are given for a program that is not a function.
        DiagnosticError: The program cannot be propagated or partitioned.
    """
    program = program_of(program, *args, **kwargs)
    return cheapest(propagated_program(program), partitioner_for(memory_limit_of(program), warns=False))


def memory_limit_of(program: "ModuleOp | LoweredProgram") -> str:
    """Return the limit of the predicted memory of a device, such as "2G"; empty without limit."""
    return "" if isinstance(program, ModuleOp) else program.memory_limit


def propagated_program(program: "ModuleOp | LoweredProgram") -> Sequence[PropagatedLayout]:
    """Return the propagated layouts of a program: several if both the program and its HLO form are propagated.

    A module that has not been propagated is propagated on a copy.

    Raises:
        DiagnosticError: The program cannot be propagated.
    """
    return layouts_of(program if isinstance(program, ModuleOp) else program.module)
