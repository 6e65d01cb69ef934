"""The primitive for calls of annotated operators: abstract evaluation, differentiation and batching."""

import os
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.extend.source_info_util import register_exclusion
from jax.interpreters import ad, batching, mlir

from sdy.operators.call import OperatorCall
from sdy.operators.transforms import Batched, Gradient, Tangent
from sdy.passes.jax.jax_internals import needs_devices_to_lower
from sdy.passes.jax.operators.lowering import lower, on_each_device
from sdy.passes.jax.operators.traced import ArrayOperator, traced_call

_operator = Primitive("operator")
_operator.multiple_results = True


def apply(operator: ArrayOperator, call: OperatorCall, operands: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Bind `call` in a traced program, and return its results.

    A function that calls Python is traced inline, so that jax differentiates it: the gradient of an operator recomputes
    the function, and would call Python a second time.
    """
    has_backward = operator.backward is not None and not call.transforms
    if not has_backward and traced_call(operator, call, tuple(map(jax.typeof, operands))).calls_python:
        return on_each_device(operator.function(call))(*operands)
    return tuple(_operator.bind(*operands, operator=operator, call=call))


@_operator.def_impl
def _run(*operands: jax.Array, operator: ArrayOperator, call: OperatorCall) -> Sequence[jax.Array]:
    return operator.function(call)(*operands)


@_operator.def_effectful_abstract_eval
def _types(
    *operands: ShapedArray, operator: ArrayOperator, call: OperatorCall
) -> tuple[Sequence[ShapedArray], AbstractSet[Any]]:
    """Return the types of the results, and the effects of the function.

    The type of a tangent is that of its output: no trace is needed, which would fail for a function with `custom_vjp`.
    """
    if call.transforms and isinstance(tangent := call.transforms[-1], Tangent):
        outputs, _ = _types(*operands[: tangent.count], operator=operator, call=call.before())
        return [outputs[index] for index in tangent.at], frozenset()
    traced = traced_call(operator, call, operands)
    return traced.results, traced.effects


def _batch(
    operands: Sequence[jax.Array], dims: Sequence[int | None], *, operator: ArrayOperator, call: OperatorCall
) -> tuple[Sequence[jax.Array], Sequence[int]]:
    in_front = [x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(operands, dims, strict=True)]
    batched = call.then(Batched(tuple(dim is not None for dim in dims)))
    outputs = _operator.bind(*in_front, operator=operator, call=batched)
    return outputs, [0] * len(outputs)


def _jvp(
    primals: Sequence[jax.Array], tangents: Sequence[Any], *, operator: ArrayOperator, call: OperatorCall
) -> tuple[Sequence[jax.Array], Sequence[Any]]:
    """JVP rule: bind the tangent of the operator, which is linear in the tangents of the operands."""
    outputs = _operator.bind(*primals, operator=operator, call=call)
    of = tuple(
        index
        for index, (primal, tangent) in enumerate(zip(primals, tangents, strict=True))
        if type(tangent) is not ad.Zero and _is_inexact(primal)
    )
    at = tuple(index for index, output in enumerate(outputs) if _is_inexact(output))
    linear: Sequence[jax.Array] = ()
    if of and at:
        tangent_call = call.then(Tangent(len(primals), of, at))
        linear = _operator.bind(*primals, *(tangents[index] for index in of), operator=operator, call=tangent_call)
    by_index = dict(zip(at, linear, strict=False))
    zeros = [ad.Zero(jax.typeof(output).to_tangent_aval()) for output in outputs]
    return outputs, [by_index.get(index, zero) for index, zero in enumerate(zeros)]


def _transpose(
    cotangents: Sequence[Any], *operands: Any, operator: ArrayOperator, call: OperatorCall
) -> Sequence[jax.Array | None]:
    """Transpose rule: the transpose of a tangent is the gradient of the operator."""
    linear = [index for index, operand in enumerate(operands) if ad.is_undefined_primal(operand)]
    at = tuple(index for index, cotangent in enumerate(cotangents) if type(cotangent) is not ad.Zero)
    given = [cotangents[index] for index in at]
    tangent = call.transforms[-1] if call.transforms else None
    if isinstance(tangent, Tangent) and linear == list(range(tangent.count, len(operands))):
        gradient = Gradient(tangent.count, tangent.of, tuple(tangent.at[index] for index in at))
        found = _gradients(operator, call.before(), gradient, (*operands[: tangent.count], *given))
    else:
        # The gradient of a linear function does not depend on the point.
        at_zero = [
            jnp.zeros(operand.aval.shape, operand.aval.dtype) if ad.is_undefined_primal(operand) else operand
            for operand in operands
        ]
        found = _gradients(operator, call, Gradient(len(operands), tuple(linear), at), (*at_zero, *given))
    by_index = dict(zip(linear, found, strict=True))
    return [by_index.get(index) for index in range(len(operands))]


def _gradients(
    operator: ArrayOperator, call: OperatorCall, gradient: Gradient, operands: Sequence[jax.Array]
) -> Sequence[jax.Array]:
    """Compute the gradients of a call, by the `backward` operator if there is one."""
    if operator.backward is None or not all(isinstance(transform, Batched) for transform in call.transforms):
        return apply(operator, call.then(gradient), operands)
    if call.transforms:
        return _batched_gradients(operator, call, gradient, operands)
    inputs, given = operands[: gradient.count], dict(zip(gradient.at, operands[gradient.count :], strict=True))
    inexact = [index for index, operand in enumerate(inputs) if _is_inexact(operand)]
    outputs, _ = _types(*map(jax.typeof, inputs), operator=operator, call=call)
    of_outputs = [
        given[index] if index in given else jnp.zeros(output.shape, output.dtype)
        for index, output in enumerate(outputs)
        if jnp.issubdtype(output.dtype, jnp.inexact)
    ]
    found = operator.backward.gradients_of(call, (*inputs, *of_outputs), len(inexact))
    return [found[inexact.index(index)] for index in gradient.of]


def _batched_gradients(
    operator: ArrayOperator, call: OperatorCall, gradient: Gradient, operands: Sequence[jax.Array]
) -> Sequence[jax.Array]:
    """Return the gradients of a batched call; those of unbatched operands are summed over the batch."""
    batched = call.transforms[-1]
    assert isinstance(batched, Batched)

    def unbatched(*operands: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(_gradients(operator, call.before(), gradient, operands))

    axes = [0 if is_batch else None for is_batch in batched.batch] + [0] * len(gradient.at)
    gradients = jax.vmap(unbatched, in_axes=axes)(*operands)
    return [each if batched.batch[index] else each.sum(0) for index, each in zip(gradient.of, gradients, strict=True)]


def _is_inexact(array: jax.Array) -> bool:
    return jnp.issubdtype(array.dtype, jnp.inexact)


ad.primitive_jvps[_operator] = _jvp
ad.primitive_transposes[_operator] = _transpose
batching.primitive_batchers[_operator] = _batch
needs_devices_to_lower(_operator)
mlir.register_lowering(_operator, lower)
# Source locations of operations begin at the caller of this package.
register_exclusion(str(Path(__file__).parent) + os.sep)
