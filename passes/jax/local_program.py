"""The program of one device as an operation of jax: what it is traced as, and what it is lowered to.

The operation is bound inside `jax.shard_map`, so that jax places the shards of the arguments and of the results; the
program itself is put, as it stands, into the module that jax is building.
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
from sdy.passes.jax.jax_internals import inlined, keep_alive
from sdy.passes.jax.to_bindings import module_to_bindings
from sdy.text import format


@dataclass(frozen=True, eq=False, repr=False)
class LocalProgram:
    """A module, not changed any more, whose `main` is what each device runs, and the types of its results."""

    module: ModuleOp
    results: tuple[ShapedArray, ...]

    @classmethod
    def of(cls, module: ModuleOp, main: FuncOp, tokens: int = 0) -> "LocalProgram":
        """The program `module`, of which `main` is the main function, which gives so many tokens before its results.

        Raises DiagnosticError for a type that no array has.
        """
        results = (array_type(type_, main) for type_ in main.function_type.outputs.data[tokens:])
        return cls(module, tuple(ShapedArray(shape, dtype) for shape, dtype in results))

    def __repr__(self) -> str:
        return f"<what a device runs, in {len(operations(self.module))} operations>"

    def as_text(self, debug_info: bool) -> str:
        """The program as MLIR prints it, with locations or without, but that it lists devices for a person to read."""
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
    keep_alive(ctx, program)  # by which it is known that the module is partitioned
    functions = ctx.module_context.symbol_table
    source = module_to_bindings(program.module, ctx.module_context.context)
    main = functions[mlir.merge_mlir_modules(ctx.module_context.module, "sdy_main", source, functions)]
    # Of a call with hundreds of results, XLA's partitioner takes longer than of all else.
    results = inlined(main, arguments)
    functions.erase(main)
    return results


mlir.register_lowering(_run, _lower)
