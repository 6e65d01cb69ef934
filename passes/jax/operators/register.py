"""`register_op`: the decorator that registers annotated operators."""

import inspect
from collections.abc import Callable
from typing import Any

from sdy.operators.operator import AnnotationMaker, WorkOfShapes
from sdy.operators.registry import register_operator
from sdy.passes.jax.operators.jax_operator import JaxOperator
from sdy.rules.annotated_factors import AnnotationError


def register_op(
    annotation: str | AnnotationMaker,
    *,
    name: str | None = None,
    backward: JaxOperator | None = None,
    check: bool = True,
    cost: WorkOfShapes | None = None,
) -> Callable[[Callable[..., Any]], JaxOperator]:
    """Return a decorator that registers a function of jax arrays as an annotated operator.

        @sdy.register_op("m^ kd+, kd+ n -> m^ n", name="matmul_custom")
        def matmul(x: jax.Array, w: jax.Array) -> jax.Array: ...

    The annotation describes the first parameters; the remaining parameters are not tensors. Called with concrete
    arrays, the operator calls the function. In a program that jax traces, the call is one operation: shardings
    propagate through it by the annotation, and each device calls the function on its shards.

    The gradient of an operator, or its tangent in forward mode, is the derivative of the function, and also one
    operation. At the first call in a traced program, the annotation is checked: the function is computed on small
    random arrays, unpartitioned and from shards along each shardable identifier, and the results are compared.

    An argument that is a dictionary, list or tuple of arrays has one input for each array, in the order of
    `jax.tree.leaves`, or a single input for all. The input of an argument that is None is omitted. Random keys are
    arrays.

    If the axes of a dimension do not divide it, devices call the function on padded shards along an identifier that all
    outputs have, and on unpadded shards if padding would be summed or observed by a callback.

    Redefining a function in the same place, for instance by running a notebook cell again, replaces the operator.
    Programs that are already traced keep the operator that they were traced with.

    Args:
        annotation: The annotation, or a function that returns it. The function is called with the shapes of the arrays
            and, by name, the arguments that are not tensors.
        name: The name of the operator; by default that of the function.
        backward: An operator that computes the gradient. It is called with the tensor arguments of this operator, the
            gradients of its results, and the other arguments that have the same names. It returns the gradients of all
            floating-point tensors. Forward mode is then an error.
        check: False to skip the check of the annotation.
        cost: A function that returns the `sdy.Work` of a call for the shapes of its arrays, which are those of a
            device's shards in a partitioned program. Predicted times use it instead of the operations of the function,
            as is right for a kernel that the function stands for. A gradient counts three times the function.

    Raises:
        AnnotationError: the annotation has a syntax error or does not match the function, or a parameter has no type
            annotation.
        ValueError: another function is registered under the name.
    """

    def make(function: Callable[..., Any]) -> JaxOperator:
        operator_name = name or function.__name__
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise _error(operator_name, f"argument '{parameter.name}' is variadic: declare each parameter")
            if parameter.annotation is parameter.empty:
                example = f"`{parameter.name}: jax.Array`, if it is a tensor"
                raise _error(operator_name, f"argument '{parameter.name}' has no type annotation: write {example}")
        if signature.return_annotation is signature.empty:
            raise _error(operator_name, "the result has no type annotation: write `-> jax.Array`, if it is a tensor")
        operator = JaxOperator(operator_name, annotation, function, signature, backward, check, cost)
        register_operator(operator)
        return operator

    return make


def _error(name: str, problem: str) -> AnnotationError:
    return AnnotationError(f"operator '{name}': {problem}")
