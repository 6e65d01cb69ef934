"""Tracing and lowering of a function of local shards outside the mesh of `jax.set_mesh`.

XLA's partitioner requests the function during compilation, inside that mesh. With Explicit axes, jax would add a
sharding custom call for each value, which XLA rejects at this point.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

from sdy.passes.jax.jax_internals import without_mesh

Function = Callable[..., tuple[jax.Array, ...]]

_on_device = Primitive("operator_on_device")
_on_device.multiple_results = True


def on_device(function: Function) -> Function:
    """Return `function`, traced with types that have no shardings."""
    return lambda *operands: tuple(_on_device.bind(*operands, function=function))


@_on_device.def_abstract_eval
def _types(*operands: ShapedArray, function: Function) -> list[ShapedArray]:
    with without_mesh():
        return jax.make_jaxpr(function)(*map(_unsharded, operands)).out_avals


def _lower(ctx: mlir.LoweringRuleContext, *operands: Any, function: Function) -> Sequence[Any]:
    with without_mesh():
        types = list(map(_unsharded, ctx.avals_in))
        return mlir.lower_fun(function, multiple_results=True)(ctx.replace(avals_in=types), *operands)


def _unsharded(operand: Any) -> ShapedArray:
    return ShapedArray(operand.shape, operand.dtype)


mlir.register_lowering(_on_device, _lower)
