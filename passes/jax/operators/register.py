"""`register_op`: a Python function as an annotated operator."""

import inspect
from collections.abc import Callable
from typing import Any

from sdy.operators.operator import AnnotationMaker
from sdy.operators.registry import register_operator
from sdy.passes.jax.operators.jax_operator import JaxOperator
from sdy.rules.annotated_factors import AnnotationError


def register_op(
    annotation: str | AnnotationMaker,
    *,
    name: str | None = None,
    backward: JaxOperator | None = None,
    check: bool = True,
) -> Callable[[Callable[..., Any]], JaxOperator]:
    """A decorator that makes an operator of a function of jax arrays.

        @sdy.register_op("m^ kd+, kd+ n -> m^ n", name="matmul_custom")
        def matmul(x: jax.Array, w: jax.Array) -> jax.Array: ...

    The annotation tells of the first parameters; those behind them are no tensors. It is a text, or a function that
    makes it, called with the shapes of the arrays and, by their names, the arguments behind them. Called with arrays,
    the operator is the function. In a program that jax traces it is one operation, which is propagated through as the
    annotation says, and of which each device computes its part by calling the function on its parts of the arrays.

    The gradient, or in forward mode the tangent, is that of the function, and again one operation. With `backward` the
    gradient is that operator instead, called with the tensors that this one takes and then the gradients of those that
    it gives, and with those of its arguments that have the same names; it returns the gradients of all tensors of
    floating-point numbers. Forward mode is then refused.

    When it first becomes a part of a program that is traced, the function is computed of small arrays of random
    numbers, whole and by parts along each identifier that may be split, and refused where the parts do not make the
    whole. With `check` false, the annotation is believed.

    An argument that is a dictionary, list or tuple of arrays has an input for each array, in the order of
    `jax.tree.leaves`, or one for all. An argument that may be None is left out where it is. Random keys are arrays.

    Where a dimension is not divided by its axes, devices call the function with padded parts along an identifier that
    all outputs have; where padding would be part of a sum or be seen by a callback, with their own elements alone.

    A function that is defined again in the same place, as in a cell of a notebook that is run twice, replaces the
    operator. Programs that were traced before call the operator that they were traced with.

    Raises:
        AnnotationError: the annotation can't be read or doesn't fit the function; a parameter has no type annotation.
        ValueError: another function is an operator of the name. By default that is the name of the function.
    """

    def make(function: Callable[..., Any]) -> JaxOperator:
        operator_name = name or function.__name__
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise _error(operator_name, f"argument '{parameter.name}' stands for many: name each of them")
            if parameter.annotation is parameter.empty:
                example = f"`{parameter.name}: jax.Array`, if it is a tensor"
                raise _error(operator_name, f"argument '{parameter.name}' has no type annotation: write {example}")
        if signature.return_annotation is signature.empty:
            raise _error(operator_name, "the result has no type annotation: write `-> jax.Array`, if it is a tensor")
        operator = JaxOperator(operator_name, annotation, function, signature, backward, check)
        register_operator(operator)
        return operator

    return make


def _error(name: str, problem: str) -> AnnotationError:
    return AnnotationError(f"operator '{name}': {problem}")
