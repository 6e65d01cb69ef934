"""A call of an annotated operator as an operation of jax: how it is traced, differentiated and mapped over."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.extend.source_info_util import register_exclusion
from jax.interpreters import batching, mlir

from sdy.operators.call import OperatorCall
from sdy.operators.transforms import Batched, Gradient
from sdy.passes.jax.jax_internals import needs_devices_to_lower
from sdy.passes.jax.operators.lowering import lower

if TYPE_CHECKING:
    from sdy.passes.jax.operators.jax_operator import JaxOperator

_operator = Primitive("operator")
_operator.multiple_results = True


def apply(operator: "JaxOperator", call: OperatorCall, operands: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """The tensors that a call gives, in a program that is traced."""
    return _differentiable(operator, call)(*operands)


@lru_cache(1024)
def _differentiable(operator: "JaxOperator", call: OperatorCall) -> Callable[..., tuple[jax.Array, ...]]:
    """The call as a function that knows its gradient, which is again an operator."""

    @jax.custom_vjp
    def run(*operands: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(_operator.bind(*operands, operator=operator, call=call))

    def forward(*operands: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        return run(*operands), operands

    def backward(operands: tuple[jax.Array, ...], gradients: tuple[jax.Array, ...]) -> tuple[jax.Array | None, ...]:
        of = tuple(index for index, operand in enumerate(operands) if _is_inexact(operand))
        at = tuple(index for index, gradient in enumerate(gradients) if _is_inexact(gradient))
        given = [gradients[index] for index in at]
        if operator.backward is not None and not call.transforms:
            found = operator.backward.gradients_of(call, (*operands, *given), len(of))
        else:
            with _what_to_write_noted(call.operator):
                found = apply(operator, call.then(Gradient(len(operands), of, at)), (*operands, *given))
        by_index = dict(zip(of, found, strict=True))
        return tuple(by_index.get(index) for index in range(len(operands)))

    run.defvjp(forward, backward)
    return run


@_operator.def_impl
def _run(*operands: jax.Array, operator: "JaxOperator", call: OperatorCall) -> Sequence[jax.Array]:
    return operator.function(call)(*operands)


@_operator.def_abstract_eval
def _types(*operands: ShapedArray, operator: "JaxOperator", call: OperatorCall) -> list[ShapedArray]:
    return _output_types(operator, call, operands)


@lru_cache(1024)
def _output_types(operator: "JaxOperator", call: OperatorCall, operands: tuple[ShapedArray, ...]) -> list[ShapedArray]:
    """What the function gives, shardings included where they are part of types."""
    given = [jax.ShapeDtypeStruct(operand.shape, operand.dtype, sharding=operand.sharding) for operand in operands]
    return [aval.update(weak_type=False) for aval in jax.make_jaxpr(operator.function(call))(*given).out_avals]


def _batch(
    operands: Sequence[jax.Array], dims: Sequence[int | None], *, operator: "JaxOperator", call: OperatorCall
) -> tuple[Sequence[jax.Array], Sequence[int]]:
    in_front = [x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(operands, dims, strict=True)]
    batched = call.then(Batched(tuple(dim is not None for dim in dims)))
    outputs = _operator.bind(*in_front, operator=operator, call=batched)
    return outputs, [0] * len(outputs)


@contextmanager
def _what_to_write_noted(operator: str) -> Generator[None]:
    """Add to what jax raises in the `with` block, for a function that it cannot differentiate, what to write."""
    try:
        yield
    except (NotImplementedError, TypeError, ValueError) as problem:
        with_backward = "@sdy.register_op(..., backward=OPERATOR), where OPERATOR finds the gradients"
        problem.add_note(
            f"The function of operator '{operator}' is differentiated: if it cannot be, write {with_backward}."
        )
        raise


def _is_inexact(array: jax.Array) -> bool:
    return jnp.issubdtype(array.dtype, jnp.inexact)


batching.primitive_batchers[_operator] = _batch
needs_devices_to_lower(_operator)
mlir.register_lowering(_operator, lower)
# What jax says of where an operation comes from begins with the caller.
register_exclusion(str(Path(__file__).parent) + os.sep)
