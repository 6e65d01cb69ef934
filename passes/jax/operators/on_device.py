"""A function of one device's parts, traced and lowered outside of the mesh of `jax.set_mesh`.

XLA asks for the function while it compiles, within that mesh. If the axes are explicit, jax adds the sharding of each
value as a custom call, which XLA does not take there.
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
    """Return `function`, whose values have types without shardings."""
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
