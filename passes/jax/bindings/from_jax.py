"""Import of JAX programs as StableHLO modules."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from jax import export
from jax.extend.source_info_util import register_exclusion
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from sdy.ir.walking import operations
from sdy.operators.call import call_of
from sdy.passes.common.immutable import OfThisProcess
from sdy.passes.common.symbol_dce import erase_dead_symbols
from sdy.passes.jax.bindings.bound_arguments import with_bound_arguments
from sdy.passes.jax.bindings.call_trees import keep_call_trees, trace_of
from sdy.passes.jax.bindings.from_bindings import module_from_bindings
from sdy.passes.jax.bindings.library_names import names_in_call, rename_arguments
from sdy.passes.jax.bindings.python_callbacks import let_each_device_call
from sdy.passes.jax.jax_internals import lower_with_placements
from sdy.stablehlo.composite import CompositeOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.text import parse_verified
from sdy.type_helpers import Function

# Source locations of operations begin at the caller of sdy.passes.jax.
register_exclusion(str(Path(__file__).parents[1]) + os.sep)


class Staged(OfThisProcess, ABC):
    """A program of sdy that has its arguments: it is traced or lowered."""

    @abstractmethod
    def from_jax(self) -> ModuleOp:
        """Return the module as jax lowers it, as `sdy.from_jax` does."""


JaxProgram = Staged | jax.stages.Traced | jax.stages.Lowered | export.Exported | Function[Any]
"""A program that `from_jax` takes."""


def from_jax(program: JaxProgram, *args: Any, **kwargs: Any) -> ModuleOp:
    """Return the StableHLO module of a JAX program, with the shardings of its arguments and constraints.

    The module records its number of devices, the names of its arguments, and the source locations of its operations.

    Args:
        program: The result of `trace` or `lower` of a function of `jax.jit` or `sdy.jit`, of
            `jax.export.export(...)(...)` or `jax.export.deserialize(...)`, or a function, jitted or not, to lower for
            `args` and `kwargs`. Functions jitted by Equinox or Flax, and the results of their `lower` methods, are
            programs too.
        *args: The positional arguments of the function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: Its keyword arguments.

    Raises:
        TypeError: `program` is not one of these, or has its arguments already and is given others.
    """
    if has_arguments(program):
        if args or kwargs:
            raise TypeError("a traced or lowered program already has its arguments: pass none")
        return _from_staged(program)
    if not callable(program) or isinstance(program, jax.stages.Compiled):
        raise TypeError(
            "expected a function, or the result of jax.jit(f).trace(...), jax.jit(f).lower(...) or "
            f"jax.export.export(...)(...), not {type(program).__name__}"
        )
    program, args, kwargs = with_bound_arguments(program, args, kwargs)
    traced = _traced(program, *args, **kwargs)
    if traced is not None:
        return _from_staged(traced)
    lowered, names = _lowered_by_library(program, *args, **kwargs)
    module = module_of(lowered.compiler_ir("stablehlo"))
    if names:
        rename_arguments(module, names)
    else:
        keep_call_trees(module, lowered)
    return module


def has_arguments(program: Any) -> bool:
    """Return whether a program that `from_jax` takes has its arguments already."""
    staged = Staged | jax.stages.Traced | jax.stages.Lowered | export.Exported
    return isinstance(_lowered_by_jax(program), staged)


def _from_staged(program: Any) -> ModuleOp:
    program = _lowered_by_jax(program)
    if isinstance(program, Staged):
        return program.from_jax()
    if isinstance(program, export.Exported):
        return module_of(program.mlir_module())
    if isinstance(program, jax.stages.Traced):
        return from_lowered(lower_with_placements(program), program.jaxpr)
    return from_lowered(program)


def from_lowered(lowered: jax.stages.Lowered, jaxpr: Any = None) -> ModuleOp:
    """Return the module of a lowered program, with its trees and the jaxpr, if it is known."""
    module = module_of(lowered.compiler_ir("stablehlo"))
    keep_call_trees(module, lowered)
    trace_of(module).jaxpr = jaxpr
    return module


def _traced(function: Any, *args: Any, **kwargs: Any) -> jax.stages.Traced | Staged | None:
    """Trace a function; None for one that a library jitted, which may have arguments that are not arrays."""
    if not hasattr(function, "lower"):
        return jax.jit(function).trace(*args, **kwargs)
    traced = function.trace(*args, **kwargs) if isinstance(function, jax.stages.Wrapped) else None
    return traced if isinstance(traced, jax.stages.Traced | Staged) else None


def _lowered_by_library(function: Any, *args: Any, **kwargs: Any) -> tuple[jax.stages.Lowered, Mapping[str, str]]:
    """Lower a function that a library jitted, and return other names of its arguments by those of JAX."""
    lowered = _lowered_by_jax(function.lower(*args, **kwargs))
    if isinstance(lowered, jax.stages.Lowered):
        return lowered, names_in_call(function, *args, **kwargs)
    return lower_with_placements(jax.jit(function).trace(*args, **kwargs)), {}


def _lowered_by_jax(program: Any) -> Any:
    """Return the program of jax in what the `lower` method of a library's jitted function returns."""
    lowered = getattr(program, "lowered", None)
    return lowered if isinstance(lowered, jax.stages.Lowered) else program


def module_of(lowered: ir.Module | str) -> ModuleOp:
    """Convert a module lowered by jax, in memory or as text."""
    module = parse_verified(lowered, "<jax>") if isinstance(lowered, str) else module_from_bindings(lowered)
    name_operator_calls(module)
    let_each_device_call(module)
    return module


def name_operator_calls(module: ModuleOp) -> None:
    """Replace each lowered call of an annotated operator by a custom call with its name as target, in place.

    Before::

        %0 = stablehlo.custom_call @CustomSPMDPartitioning(%arg0) {backend_config = "139875284", sdy.operator = "f()"}

    After::

        %0 = stablehlo.custom_call @f(%arg0) {sdy.operator = "f()"}
    """
    has_composites = False
    for op in operations(module):
        if (call := call_of(op)) is None:
            continue
        has_composites |= isinstance(op, CompositeOp)
        named = CustomCallOp.create(
            operands=op.operands,
            result_types=op.result_types,
            properties={"call_target_name": StringAttr(call.name)},
            attributes=op.attributes,
            location=op.location,
        )
        Rewriter.replace_op(op, named)
    if has_composites:
        erase_dead_symbols(module)
