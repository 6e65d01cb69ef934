"""A JAX program as a module."""

import os
from pathlib import Path
from typing import Any

import jax
from jax import export
from jax.extend.source_info_util import register_exclusion
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp

from sdy.callables import Function
from sdy.passes.jax.from_bindings import module_from_bindings
from sdy.passes.jax.jax_internals import lower_with_placements
from sdy.passes.jax.operator_calls import name_operator_calls
from sdy.passes.jax.python_callbacks import let_each_device_call
from sdy.text import parse_verified

# What jax says of where an operation comes from begins with the caller.
register_exclusion(str(Path(__file__).parent) + os.sep)


def from_jax(program: jax.stages.Lowered | export.Exported | Function[Any], *args: Any, **kwargs: Any) -> ModuleOp:
    """The StableHLO module of a JAX program, with the shardings that its arguments and constraints carry.

    `program` is what `jax.jit(f).lower(...)`, `jax.export.export(...)(...)` or `jax.export.deserialize(...)` returned,
    or a function, jitted or not, that is lowered here for `args` and `kwargs`: arrays or `jax.ShapeDtypeStruct`s. The
    module says for how many devices it is; its arguments have the names that JAX gave them, and operations keep the
    source lines that it knows. Raises TypeError where `program` is none of these.
    """
    if isinstance(program, jax.stages.Lowered | export.Exported):
        if args or kwargs:
            raise TypeError("a lowered program has its arguments already: give none to from_jax")
        if isinstance(program, export.Exported):
            return module_of(program.mlir_module())
        lowered = program
    elif callable(program):
        jitted = program if isinstance(program, jax.stages.Wrapped) else jax.jit(program)
        lowered = lower_with_placements(jitted.trace(*args, **kwargs))
    else:
        raise TypeError(
            "from_jax takes a function or what jax.jit(f).lower(...) or jax.export.export(...)(...) returns, "
            f"not {type(program).__name__}"
        )
    return module_of(lowered.compiler_ir("stablehlo"))


def module_of(lowered: ir.Module | str) -> ModuleOp:
    """The module that jax lowered a program to, which is this, or has this text."""
    module = parse_verified(lowered, "<jax>") if isinstance(lowered, str) else module_from_bindings(lowered)
    name_operator_calls(module)
    let_each_device_call(module)
    return module
