from collections.abc import Callable, Sequence
from typing import Any

from jax.core import ShapedArray
from jax.extend.core import Primitive
from jaxlib.mlir import ir

from sdy.callables import Function

class LoweringRuleContext:
    module_context: Any
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]

def ir_constant(val: Any) -> ir.Value[Any]: ...
def lower_fun(fun: Function[Any], multiple_results: bool = ...) -> Callable[..., Any]: ...
def make_ir_context() -> ir.Context: ...
def merge_mlir_modules(dst_module: ir.Module, sym_name: str, src_module: ir.Module, dst_symtab: Any = ...) -> str: ...
def register_lowering(
    prim: Primitive, rule: Callable[..., Sequence[ir.Value[Any]]], platform: str | None = ...
) -> None: ...
