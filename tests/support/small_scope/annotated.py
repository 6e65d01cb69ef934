"""Calls of annotated operators, their gradients, tangents and batched forms.

Where an annotation sums over an identifier, the function does not map zeros to zeros, so that padding in a sum is seen.
"""

from math import prod

import jax
import jax.numpy as jnp
import numpy as np

import sdy
from sdy.dialect.rule_syntax import rule_text
from sdy.operators.annotation import Tensor
from sdy.operators.call import OperatorCall
from sdy.operators.transforms import Batched, Gradient, Tangent
from sdy.passes.jax.operators.jax_operator import JaxOperator
from small_scope.program import Program, Shape, Value


@sdy.register_op("a b -> a b")
def small_scope_exp(x: jax.Array) -> jax.Array:
    return jnp.exp(x / 8)


@sdy.register_op("a b, a -> b a, a")
def small_scope_transpose(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return (jnp.cos(x) * y[:, None]).T, jnp.cos(y)


@sdy.register_op("m k+, k+ n -> m n")
def small_scope_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.cos(x) @ jnp.sin(1 + w)


@sdy.register_op("a+ b -> a+ b, b")
def small_scope_sum(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.cos(x), jnp.cos(x).sum(0)


@sdy.register_op("a b^ -> a b^")
def small_scope_softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, 1)


@sdy.register_op("a k^, k^ -> a")
def small_scope_dot(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.cos(x) @ w


@sdy.register_op("a (b c^) -> a b c^")
def small_scope_heads(x: jax.Array, c: int) -> jax.Array:
    return jnp.cos(x).reshape(x.shape[0], -1, c)


@sdy.register_op("a b c^ -> (a b) c^")
def small_scope_rows(x: jax.Array) -> jax.Array:
    return jnp.cos(x).reshape(-1, x.shape[2])


OPERATORS = (
    small_scope_exp,
    small_scope_transpose,
    small_scope_matmul,
    small_scope_sum,
    small_scope_softmax,
    small_scope_dot,
    small_scope_heads,
    small_scope_rows,
)


def annotated_operator(program: Program) -> Program:
    operator, sizes = _operator_and_sizes(program)
    inputs, outputs = _shapes(operator, sizes)
    operands = _operands(program, inputs)
    return program.result(*_call(program, operator, _plain(operator, sizes), operands, outputs))


def annotated_gradient(program: Program) -> Program:
    operator, sizes = _operator_and_sizes(program)
    inputs, outputs = _shapes(operator, sizes)
    of, at = _some(program, len(inputs)), _some(program, len(outputs))
    operands = _operands(program, [*inputs, *(outputs[index] for index in at)])
    call = _plain(operator, sizes).then(Gradient(len(inputs), of, at))
    return program.result(*_call(program, operator, call, operands, [inputs[index] for index in of]))


def annotated_tangent(program: Program) -> Program:
    operator, sizes = _operator_and_sizes(program)
    inputs, outputs = _shapes(operator, sizes)
    of, at = _some(program, len(inputs)), _some(program, len(outputs))
    operands = _operands(program, [*inputs, *(inputs[index] for index in of)])
    call = _plain(operator, sizes).then(Tangent(len(inputs), of, at))
    return program.result(*_call(program, operator, call, operands, [outputs[index] for index in at]))


def annotated_batch(program: Program) -> Program:
    operator, sizes = _operator_and_sizes(program)
    inputs, outputs = _shapes(operator, sizes)
    batched, size = _some(program, len(inputs)), program.size(1, 5)
    is_batch = tuple(index in batched for index in range(len(inputs)))
    operands = _operands(
        program, [(size, *shape) if has else shape for shape, has in zip(inputs, is_batch, strict=True)]
    )
    call = _plain(operator, sizes).then(Batched(is_batch))
    return program.result(*_call(program, operator, call, operands, [(size, *shape) for shape in outputs]))


def _operator_and_sizes(program: Program) -> tuple[JaxOperator, dict[str, int]]:
    operator = program.choices.of(OPERATORS)
    assert operator.annotation is not None
    names = dict.fromkeys(identifier.name for identifier in operator.annotation.identifiers)
    return operator, {name: program.size(1, 5) for name in names}


def _shapes(operator: JaxOperator, sizes: dict[str, int]) -> tuple[list[Shape], list[Shape]]:
    def shape(tensor: Tensor) -> Shape:
        return tuple(prod(sizes[identifier.name] for identifier in dim) for dim in tensor)

    annotation = operator.annotation
    assert annotation is not None
    return [*map(shape, annotation.tensor_inputs)], [*map(shape, annotation.tensor_outputs)]


def _some(program: Program, count: int) -> tuple[int, ...]:
    """Choose all of `count` indices, or one."""
    return program.choices.of([(*range(count),), *((index,) for index in range(count) if count > 1)])


def _plain(operator: JaxOperator, sizes: dict[str, int]) -> OperatorCall:
    """Return the call of an operator, with the size of `c` as argument where the function has it."""
    return OperatorCall(operator.name, tuple((name, sizes[name]) for name in operator.parameters if name in sizes))


def _operands(program: Program, shapes: list[Shape]) -> list[Value]:
    operands: list[Value] = []
    for shape in shapes:
        numbers = np.arange(prod(shape)).reshape(shape) / 8 + len(operands)
        operands.append(program.constrained(program.whole(shape, "f32", numbers)))
    return operands


def _call(
    program: Program, operator: JaxOperator, call: OperatorCall, operands: list[Value], results: list[Shape]
) -> list[Value]:
    rule = operator.rule(call, [operand.shape for operand in operands], results).rule
    names = ", ".join(operand.name for operand in operands)
    attributes = f'sdy.operator = "{call}", sdy.sharding_rule = #sdy.op_sharding_rule{rule_text(rule)}'
    text = f"stablehlo.custom_call @{operator.name}({names}) {{{attributes}}}"
    return program.ops(text, results, operands, ["f32"] * len(results))


ANNOTATED = [annotated_operator, annotated_gradient, annotated_tangent, annotated_batch]
