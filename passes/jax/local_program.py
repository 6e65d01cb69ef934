"""The program of one device as an operation of jax: what it is traced as, and what it is lowered to.

The operation is bound inside `jax.shard_map`, so that jax places the shards of the arguments and of the results; the
program itself is put, as it stands, into the module that jax is building.
"""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Effect, Primitive
from jax.interpreters import mlir
from jaxlib.mlir import ir
from xdsl.dialects.func import FuncOp

from sdy.array_types import array_type
from sdy.passes.jax.jax_internals import inlined, keep_alive
from sdy.passes.jax.python_callbacks import calls_python
from sdy.text import format, parse


@dataclass(frozen=True, repr=False)
class LocalProgram:
    """The text of a module whose `main` is what each device runs, and what jax knows of it.

    `results` are the types of the results of `main`, `callbacks` the Python functions that its custom calls number, and
    `effects` say that it has to run although nothing uses its results. For each of the `ordered` ones `main` takes a
    token before its arguments, and gives one before its results.
    """

    text: str
    results: tuple[ShapedArray, ...]
    callbacks: tuple[Callable[..., Any], ...] = ()
    effects: frozenset[Effect] = frozenset()
    ordered: tuple[Effect, ...] = ()

    @classmethod
    def of(cls, text: str, main: FuncOp, tokens: int = 0) -> "LocalProgram":
        """The program `text`, of which `main` is the main function, which takes and gives so many tokens.

        Raises DiagnosticError for a type that no array has.
        """
        results = (array_type(type_, main) for type_ in main.function_type.outputs.data[tokens:])
        return cls(text, tuple(ShapedArray(shape, dtype) for shape, dtype in results))

    def __repr__(self) -> str:
        lines = self.text.count("\n")
        return f"<what a device runs, in {lines} lines>"

    def module(self) -> ir.Module:
        """The program as a module of jaxlib's MLIR, in a context of its own."""
        return parsed(self.text)

    def as_text(self, debug_info: bool) -> str:
        """The program as MLIR prints it, with locations or without, but that it lists devices for a person to read."""
        return format(parse(self.text), debuginfo=debug_info)

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        """Apply the program to tracers of one device's arguments."""
        return tuple(_run.bind(*arguments, program=self))


def parsed(text: str) -> ir.Module:
    """The module that `text` is, in jaxlib's MLIR, in a context of its own."""
    with mlir.make_ir_context():
        return ir.Module.parse(text)


_run = Primitive("sdy_program")
_run.multiple_results = True


@_run.def_effectful_abstract_eval
def _results(*_: Any, program: LocalProgram) -> tuple[list[ShapedArray], set[Effect]]:
    return list(program.results), set(program.effects)


def _lower(ctx: mlir.LoweringRuleContext, *arguments: ir.Value, program: LocalProgram) -> Sequence[ir.Value]:
    keep_alive(ctx, program)  # by which it is known that the module is partitioned
    source = ir.Module.parse(program.text)
    _number_callbacks(source, from_=len(ctx.module_context.host_callbacks))
    for callback in program.callbacks:
        ctx.module_context.add_host_callback(callback)
    functions = ctx.module_context.symbol_table
    main = functions[mlir.merge_mlir_modules(ctx.module_context.module, "sdy_main", source, functions)]
    # Of a call with hundreds of results, XLA's partitioner takes longer than of all else.
    results = inlined(main, [*map(ctx.tokens_in.get, program.ordered), *arguments])
    functions.erase(main)
    count = len(program.ordered)
    tokens = mlir.TokenSet(dict(zip(program.ordered, results[:count], strict=True)))
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(tokens))
    return results[count:]


def _number_callbacks(module: ir.Module, from_: int) -> None:
    """Let custom calls that call back into Python number the functions `from_` on."""

    def renumber(op: ir.Operation) -> ir.WalkResult:
        if "mhlo.backend_config" in op.attributes:
            config = {entry.name: entry.attr for entry in ir.DictAttr(op.attributes["mhlo.backend_config"])}
            if calls_python(ir.StringAttr(op.attributes["call_target_name"]).value):
                number = ir.IntegerAttr(config["index"])
                config["index"] = ir.IntegerAttr.get(number.type, number.value + from_)
                op.attributes["mhlo.backend_config"] = ir.DictAttr.get(config)
        return ir.WalkResult.ADVANCE

    if from_:
        module.operation.walk(renumber)


mlir.register_lowering(_run, _lower)
