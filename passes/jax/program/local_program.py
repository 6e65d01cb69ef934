"""A primitive that runs the local program of each device.

The primitive is bound inside `jax.shard_map`, so that jax places the shards of arguments and results. Its lowering rule
inlines the local program into the module that jax is lowering.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.array_types import array_type
from sdy.ir.walking import operations
from sdy.passes.jax.bindings.to_bindings import module_to_bindings
from sdy.passes.jax.jax_internals import inlined, keep_alive
from sdy.text import format


@dataclass(frozen=True, eq=False, repr=False)
class LocalProgram:
    """An immutable module whose main function runs on each device, and the types of its results."""

    module: ModuleOp
    results: tuple[ShapedArray, ...]

    @classmethod
    def of(cls, module: ModuleOp, main: FuncOp, tokens: int = 0) -> "LocalProgram":
        """Wrap `module`, whose function `main` returns `tokens` tokens before its results.

        Raises DiagnosticError for a type that no array has.
        """
        results = (array_type(type_, main) for type_ in main.function_type.outputs.data[tokens:])
        return cls(module, tuple(ShapedArray(shape, dtype) for shape, dtype in results))

    def __repr__(self) -> str:
        return f"<local program of {len(operations(self.module))} operations>"

    def as_text(self, debug_info: bool) -> str:
        """Return the program as MLIR text, with locations if `debug_info`."""
        return format(self.module, debuginfo=debug_info)

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        """Apply the program to tracers of one device's arguments."""
        return tuple(_run.bind(*arguments, program=self))


_run = Primitive("sdy_program")
_run.multiple_results = True


@_run.def_abstract_eval
def _results(*_: Any, program: LocalProgram) -> list[ShapedArray]:
    return list(program.results)


def _lower(ctx: mlir.LoweringRuleContext, *arguments: ir.Value, program: LocalProgram) -> Sequence[ir.Value]:
    keep_alive(ctx, program)  # marks the module as partitioned
    functions = ctx.module_context.symbol_table
    source = module_to_bindings(program.module, ctx.module_context.context)
    main = functions[mlir.merge_mlir_modules(ctx.module_context.module, "sdy_main", source, functions)]
    # XLA's partitioner is slow on calls with hundreds of results, so the call is inlined.
    results = inlined(main, arguments)
    functions.erase(main)
    return results


mlir.register_lowering(_run, _lower)
