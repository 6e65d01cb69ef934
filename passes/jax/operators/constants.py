"""Closed-over arrays of a function, lowered as constants instead of additional operands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import mlir

Function = Callable[..., tuple[jax.Array, ...]]


@dataclass(frozen=True, eq=False)
class _Array:
    """An array as a parameter of a primitive, hashed by identity."""

    value: Any


_constant = Primitive("operator_constant")


def with_constants(function: Function) -> Function:
    """Return `function` with the arrays that it closes over as constants."""

    def run(*operands: jax.Array) -> tuple[jax.Array, ...]:
        traced = jax.make_jaxpr(function)(*operands)
        constants = [_constant.bind(array=_Array(value)) for value in traced.consts]
        return tuple(jaxpr_as_fun(traced.replace(jaxpr=traced.jaxpr, consts=constants))(*operands))

    return run


@_constant.def_impl
def _run(array: _Array) -> Any:
    return array.value


@_constant.def_abstract_eval
def _type(array: _Array) -> ShapedArray:
    return ShapedArray(array.value.shape, array.value.dtype)


def _lower(ctx: mlir.LoweringRuleContext, array: _Array) -> Sequence[Any]:
    return [mlir.ir_constant(array.value)]


mlir.register_lowering(_constant, _lower)
