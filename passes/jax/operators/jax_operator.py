"""Annotated operators implemented by a function of jax arrays."""

import ast
import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from typing import Any, NamedTuple, Union, cast, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.operators.annotation import ONE_ELEMENT
from sdy.operators.arguments import holds_tensors, is_container, leaves, literal_text, with_leaves
from sdy.operators.call import OperatorCall
from sdy.operators.operator import AnnotationMaker, Operator, WorkOfShapes
from sdy.operators.transforms import KeyData, Tangent
from sdy.passes.jax.operators.check import check_parts
from sdy.passes.jax.operators.keys import is_key, keys_among, with_data, with_keys
from sdy.passes.jax.operators.place import Place
from sdy.passes.jax.operators.primitive import apply
from sdy.passes.jax.operators.program import program_of, refusal_of, sees_all_elements
from sdy.passes.jax.operators.traced import ArrayOperator, traced_call
from sdy.passes.jax.operators.transformed import transformed
from sdy.type_helpers import is_list, is_tuple

_inside: ContextVar[bool] = ContextVar("inside_operator", default=False)
"""True while the function of an operator runs; other operators that it calls are then plain functions."""


def _array(value: Any) -> jax.Array:
    """Convert an argument to a jax array with a strong type."""
    array = value if isinstance(value, jax.Array) else jnp.asarray(value)
    return jax.lax.convert_element_type(array, array.dtype) if jax.typeof(array).weak_type else array


class Outcome(NamedTuple):
    """The result of a function, the tensors in it, and per output the value that is no tensor and whether it is one."""

    result: Any
    tensors: tuple[Any, ...]
    others: tuple[Any, ...]
    is_tensor: tuple[bool, ...]


class JaxOperator(ArrayOperator):
    """An annotated function of jax arrays, which is called like the function."""

    def __init__(
        self,
        name: str,
        annotation: str | AnnotationMaker,
        function: Callable[..., Any],
        signature: inspect.Signature,
        backward: "JaxOperator | None",
        check: bool,
        cost: WorkOfShapes | None = None,
    ) -> None:
        parameters = signature.parameters
        super().__init__(
            name,
            annotation,
            list(parameters),
            optional=[name for name, parameter in parameters.items() if may_be_none(parameter)],
            containers=[name for name, parameter in parameters.items() if may_be_container(parameter)],
            cost=cost,
        )
        self._function = function
        self._place = Place.of(function)
        self._signature = signature
        self.backward = backward
        self._check = check
        update_wrapper(self, function)

    def replaces(self, other: Operator) -> bool:
        return isinstance(other, JaxOperator) and self._place.is_again(other._place)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; in a traced program, add one operation that calls it.

        Raises:
            AnnotationError: the arguments or the results do not match the annotation.
        """
        if _inside.get():
            return self._function(*args, **kwargs)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as mistake:
            raise self.error(str(mistake)) from None
        bound.apply_defaults()
        arrays, values = self._separated(bound.arguments)
        # In a manual computation, the arrays are local shards already.
        is_local = bool(jax.sharding.get_abstract_mesh().manual_axes)
        if is_local or not any(isinstance(array, Tracer) for array in arrays):
            return self.run(arrays, values).result
        arguments = tuple((name, self._literal(name, value)) for name, value in values.items())
        call = OperatorCall(self.name, arguments, version=self.version)
        outcome = evaluate(self, call, tuple(map(_type_of, arrays)))
        keys, keys_given = keys_among(arrays), keys_among(outcome.tensors)
        if keys or keys_given:
            call = call.then(KeyData(keys, keys_given))
            arrays = with_data(arrays, keys)
        if self._check and not traced_call(self, call, tuple(map(jax.typeof, arrays))).calls_python:
            check_once(self, call, tuple(map(_type_of, arrays)))
        tensors = iter(with_keys(apply(self, call, arrays), keys_given))
        pairs = zip(outcome.is_tensor, outcome.others, strict=True)
        outputs = [next(tensors) if is_tensor else other for is_tensor, other in pairs]
        return None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _separated(self, arguments: Mapping[str, Any]) -> tuple[tuple[jax.Array, ...], dict[str, Any]]:
        """Separate the arrays among the arguments from the other values, with an Ellipsis in place of each array."""
        arrays: list[jax.Array] = []
        values: dict[str, Any] = {}
        annotated = self.annotation.inputs if self.annotation else ()
        position = 0
        for name, value in arguments.items():
            is_annotated = position < len(annotated) and annotated[position] is not None
            if is_annotated and isinstance(value, int | float | complex | np.generic):
                value = _array(value)
            new_leaves: list[Any] = []
            for path, leaf in leaves(name, value):
                if _is_array(leaf):
                    arrays.append(self._operand(path, leaf))
                    new_leaves.append(...)
                elif any(map(_is_array, jax.tree.leaves(leaf))):
                    kind = type(leaf).__name__
                    advice = "pass them in a dict, list or tuple, or one by one"
                    raise self.error(f"argument '{path}' is of type {kind} and holds arrays: {advice}")
                else:
                    new_leaves.append(leaf)
            position += max(new_leaves.count(...), 1)
            if new_leaves != [...] or is_container(value):
                values[name] = with_leaves(value, iter(new_leaves))
        return tuple(arrays), values

    def _operand(self, name: str, value: Any) -> jax.Array:
        array = _array(value)
        if jnp.issubdtype(array.dtype, jax.dtypes.extended) and not is_key(array):
            raise self.error(f"argument '{name}' has elements of type {array.dtype}: pass the arrays it is made of")
        return array

    def function(self, call: OperatorCall) -> Callable[..., tuple[jax.Array, ...]]:
        """Return the function that a call computes, from jax arrays to a tuple of jax arrays."""
        return function_of(self, call)

    def gradients_of(self, call: OperatorCall, operands: Sequence[jax.Array], count: int) -> Sequence[jax.Array]:
        """Compute the `count` gradients of another operator's call, with this operator as its `backward`."""
        values = {name: value for name, value in call.arguments if name in self.parameters and not holds_tensors(value)}
        names = [name for name in self.parameters if name not in values]
        role = f"as `backward` of '{call.operator}'"
        if len(names) < len(operands):
            raise self.error(f"{role} takes {len(names)} tensors, but is called with {len(operands)}")
        result = self(**dict(zip(names, operands, strict=False)), **values)
        found: tuple[jax.Array, ...] = result if is_tuple(result) else (result,)
        if len(found) != count:
            raise self.error(f"{role} must return {count} gradients, but returns {len(found)}")
        return found

    def module(self, call: OperatorCall, types: Sequence[Attribute]) -> ModuleOp:
        return program_of(self.function(call), types)

    def refusal(self, call: OperatorCall, types: Sequence[Attribute]) -> str | None:
        return refusal_of(self.function(call), types)

    def sees_padding(self, call: OperatorCall, types: Sequence[Attribute]) -> bool:
        return sees_all_elements(self.function(call), types)

    def run(self, operands: Sequence[jax.Array], values: Mapping[str, Any]) -> Outcome:
        """Call the function and match its results with the annotation.

        Args:
            operands: The tensors.
            values: The other arguments by name.

        Raises:
            AnnotationError: the arguments or the results do not match the annotation.
        """
        shapes = [operand.shape for operand in operands]
        outputs = self.annotation_for(shapes, values).outputs
        expected = iter(self.fit(shapes, values).output_shapes)
        result = self._invoke(self.arguments(operands, values))
        returned: tuple[Any, ...] = (result,) if outputs or result is not None else ()
        if len(outputs) > 1 and (is_tuple(result) or is_list(result)):
            returned = tuple(result)
        if len(returned) != len(outputs):
            raise self.error(f"the annotation has {len(outputs)} outputs, but the function returns {len(returned)}")
        tensors: list[jax.Array] = []
        for index, (value, tensor) in enumerate(zip(returned, outputs, strict=True)):
            if tensor is None:
                continue
            if not _is_array(value):
                raise self.error(f"output {index} is not an array, but has dimensions in the annotation")
            shape = next(expected)
            if value.shape != shape and not (tensor == ONE_ELEMENT and value.shape == ()):
                raise self.error(f"output {index} has the shape {value.shape}, but {shape} by the annotation")
            tensors.append(value)
        others = [None if tensor else value for value, tensor in zip(returned, outputs, strict=True)]
        return Outcome(result, tuple(tensors), tuple(others), tuple(tensor is not None for tensor in outputs))

    def _invoke(self, arguments: Mapping[str, Any]) -> Any:
        ordered = OrderedDict((name, arguments[name]) for name in self.parameters)
        bound = inspect.BoundArguments(self._signature, ordered)
        token = _inside.set(True)
        try:
            return self._function(*bound.args, **bound.kwargs)
        finally:
            _inside.reset(token)

    def _literal(self, name: str, value: Any) -> Any:
        """Convert an argument to a Python literal. Raises AnnotationError if it has none."""
        if isinstance(value, np.generic):
            value = cast("np.generic[Any]", value).item()
        try:
            if ast.literal_eval(literal_text(value)) == value:
                return value
        except (ValueError, SyntaxError, TypeError):
            pass
        advice = "pass a number, a string, None, or a tuple, list or dict of such"
        raise self.error(f"argument '{name}' is {value!r}, which can't be written into a program: {advice}")


def _type_of(array: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray)


@lru_cache(1024)
def function_of(operator: JaxOperator, call: OperatorCall) -> Callable[..., tuple[jax.Array, ...]]:
    """Return the memoized function of a call: jax caches traces by the identity of the function.

    Raises:
        AnnotationError: the call needs a tangent, but the operator has a `backward` operator.
    """
    if operator.backward is not None and any(isinstance(transform, Tangent) for transform in call.transforms):
        raise operator.error(
            f"has no tangent for jax.jvp, jax.jacfwd or jax.linearize, as '{operator.backward.name}' computes its "
            "gradient only; use jax.grad, jax.vjp or jax.jacrev, or register it without `backward`"
        )

    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        return operator.run(operands, dict(call.arguments)).tensors

    return transformed(operator.name, compute, call.transforms)


@lru_cache(1024)
def evaluate(operator: JaxOperator, call: OperatorCall, types: tuple[jax.ShapeDtypeStruct, ...]) -> Outcome:
    """Return the outcome of the function for tensors of these types, with a single trace."""
    outcomes: list[Outcome] = []

    def compute(*operands: jax.Array) -> tuple[jax.Array, ...]:
        outcomes.append(operator.run(operands, dict(call.arguments)))
        return outcomes[-1].tensors

    tensors = jax.eval_shape(compute, *types)
    return outcomes[-1]._replace(result=None, tensors=tensors)


@lru_cache(1024)
def check_once(operator: JaxOperator, call: OperatorCall, types: tuple[jax.ShapeDtypeStruct, ...]) -> None:
    """Run `check_parts` once for each of its arguments."""
    check_parts(operator, call, types)


_SINGLE = (jax.Array, np.ndarray, bool, int, float, complex, str, type(None))


def may_be_none(parameter: inspect.Parameter) -> bool:
    """Return true if a parameter may be None, by its default or its type."""
    if parameter.default is None or isinstance(parameter.annotation, str):
        return parameter.default is None or any(word in parameter.annotation for word in ("None", "Optional"))
    return type(None) in _alternatives(parameter.annotation)


def may_be_container(parameter: inspect.Parameter) -> bool:
    """Return true if a parameter may be a dict, list or tuple of arrays, each with its own input in the annotation."""
    if isinstance(parameter.annotation, str):
        words = {each.__name__ for each in _SINGLE} | {"None", "jax.Array", "np.ndarray", "numpy.ndarray"}
        return any(word.strip() not in words for word in parameter.annotation.split("|"))
    return any(alternative not in _SINGLE for alternative in _alternatives(parameter.annotation))


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; any other type as the only member."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
