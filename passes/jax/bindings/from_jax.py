"""Import of JAX programs as StableHLO modules."""

import os
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
from sdy.passes.common.symbol_dce import erase_dead_symbols
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


def from_jax(program: jax.stages.Lowered | export.Exported | Function[Any], *args: Any, **kwargs: Any) -> ModuleOp:
    """Return the StableHLO module of a JAX program, with the shardings of its arguments and constraints.

    The module records its number of devices, the names of its arguments, and the source locations of its operations.

    Args:
        program: The result of `jax.jit(f).lower(...)`, `jax.export.export(...)(...)` or `jax.export.deserialize(...)`,
            or a function, jitted or not, to lower for `args` and `kwargs`. Functions jitted by Equinox or Flax, and the
            results of their `lower` methods, are programs too.
        *args: The positional arguments of the function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: Its keyword arguments.

    Raises:
        TypeError: `program` is not one of these, or is lowered already and has arguments.
    """
    program = _lowered_by_jax(program)
    names: Mapping[str, str] = {}
    jaxpr: Any = None
    if isinstance(program, jax.stages.Lowered | export.Exported):
        if args or kwargs:
            raise TypeError("from_jax takes no arguments for a program that is already lowered")
        if isinstance(program, export.Exported):
            return module_of(program.mlir_module())
        lowered = program
    elif callable(program) and not isinstance(program, jax.stages.Compiled):
        traced = _traced_by_jax(program, *args, **kwargs)
        if traced is None:
            lowered, names = _lowered_by_library(program, *args, **kwargs)
        else:
            lowered, jaxpr = lower_with_placements(traced), traced.jaxpr
    else:
        raise TypeError(
            "expected a function, or the result of jax.jit(f).lower(...) or jax.export.export(...)(...), "
            f"not {type(program).__name__}"
        )
    module = module_of(lowered.compiler_ir("stablehlo"))
    if names:
        rename_arguments(module, names)
    else:
        keep_call_trees(module, lowered)
    trace_of(module).jaxpr = jaxpr
    return module


def _traced_by_jax(function: Any, *args: Any, **kwargs: Any) -> jax.stages.Traced | None:
    """Trace a function; None for one that a library jitted, which may have arguments that are not arrays."""
    if not hasattr(function, "lower"):
        return jax.jit(function).trace(*args, **kwargs)
    traced = function.trace(*args, **kwargs) if isinstance(function, jax.stages.Wrapped) else None
    return traced if isinstance(traced, jax.stages.Traced) else None


def _lowered_by_library(function: Any, *args: Any, **kwargs: Any) -> tuple[jax.stages.Lowered, Mapping[str, str]]:
    """Lower a function that a library jitted, and return other names of its arguments by those of JAX."""
    lowered = _lowered_by_jax(function.lower(*args, **kwargs))
    if isinstance(lowered, jax.stages.Lowered):
        return lowered, names_in_call(function, *args, **kwargs)
    return lower_with_placements(jax.jit(function).trace(*args, **kwargs)), {}


def is_lowered(program: Any) -> bool:
    """Return whether a program that `from_jax` takes has its arguments already."""
    return isinstance(_lowered_by_jax(program), jax.stages.Lowered | export.Exported)


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
