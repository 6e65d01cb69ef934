"""Operators: functions with an annotation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.operators.annotation import OperatorAnnotation, Tensor
from sdy.operators.arguments import holds_tensors, leaves, with_leaves
from sdy.operators.call import OperatorCall
from sdy.operators.notation import parse_operator
from sdy.operators.rules import OperatorRule, operator_rule
from sdy.operators.shapes import Fitted, Shape, fit
from sdy.operators.transforms import Batched, Gradient, Tangent
from sdy.operators.work import Work
from sdy.rules.annotated_factors import AnnotationError

T = TypeVar("T")

WorkOfShapes = Callable[[Sequence[Shape]], Work]
"""A function that returns the work of a call for the shapes of its operands."""

AnnotationMaker = Callable[..., object]
"""A function (shapes of the inputs, other arguments by name) -> the text of an annotation."""


_TIMES: Mapping[type, float] = {Gradient: 3.0, Tangent: 2.0}
"""The operations of a transformed call for each of the function: a gradient computes the function, and two products for
each of its products; a tangent computes one more."""


class _Argument(NamedTuple):
    """A tensor or another value passed to an operator, by its name or its path in an argument.

    The value of a tensor is an Ellipsis.
    """

    parameter: str
    name: str
    value: object


class Operator(ABC):
    """A function with an annotation of its first parameters.

    All error messages name the operator and the argument.

    Args:
        name: The name of the operator.
        annotation: The annotation, or a function that returns the annotation for the shapes of a call.
        parameters: The names of the function's parameters.
        optional: The parameters that may be None.
        containers: The parameters that may contain several tensors.
        cost: A function of the operands' shapes that returns the work of a call; by default the operations of the
            function are counted.

    Raises:
        AnnotationError: The annotation cannot be parsed, or does not match the parameters.
    """

    def __init__(
        self,
        name: str,
        annotation: str | AnnotationMaker,
        parameters: Sequence[str],
        optional: Collection[str] = (),
        containers: Collection[str] = (),
        cost: WorkOfShapes | None = None,
    ) -> None:
        self.name = name
        self._cost = cost
        self.version = 0
        self.parameters = tuple(parameters)
        self._optional = frozenset(optional)
        self._containers = frozenset(containers)
        self._annotation = self._checked(annotation) if isinstance(annotation, str) else annotation

    def declared_work(self, call: OperatorCall, shapes: Sequence[Shape]) -> Work | None:
        """Return the work of `call` on operands of these shapes; None if the operator declares no cost."""
        if self._cost is None:
            return None
        of_function, times = _of_function(call, shapes)
        return self._cost(of_function).times(times)

    @property
    def annotation(self) -> OperatorAnnotation | None:
        """The annotation; None if it depends on the shapes of each call."""
        return self._annotation if isinstance(self._annotation, OperatorAnnotation) else None

    def annotation_for(self, shapes: Sequence[Shape], values: Mapping[str, object]) -> OperatorAnnotation:
        """Return the annotation for tensors of these shapes and these non-tensor arguments."""
        if isinstance(self._annotation, OperatorAnnotation):
            return self._annotation
        arguments = self.arguments(shapes, values)
        with_tensors = [index for index, name in enumerate(self.parameters) if self._has_tensors(name, values)]
        inputs = self.parameters[: with_tensors[-1] + 1 if with_tensors else 0]
        others = {name: value for name, value in values.items() if name not in inputs}
        text = self._annotation(*(arguments[name] for name in inputs), **others)
        if not isinstance(text, str):
            raise self.error(f"its annotation function returned {text!r}, which is not a string")
        return self._checked(text)

    def arguments(self, tensors: Sequence[T], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, with `tensors` in the places of Ellipses and missing values."""
        each = iter(tensors)
        return {
            name: with_leaves(value, iter([next(each) if leaf is ... else leaf for _, leaf in leaves(name, value)]))
            for name, value in ((name, values.get(name, ...)) for name in self.parameters)
        }

    def tensor_names(self, call: OperatorCall) -> list[str]:
        """Return the names of a call's tensors: of parameters without a value, or paths within a value."""
        return [argument.name for argument in self._flat_arguments(dict(call.arguments)) if argument.value is ...]

    def _has_tensors(self, name: str, values: Mapping[str, object]) -> bool:
        return holds_tensors(values.get(name, ...))

    def _flat_arguments(self, values: Mapping[str, object]) -> list[_Argument]:
        """Return the arguments of a call; of containers, only their tensors."""
        arguments: list[_Argument] = []
        for parameter in self.parameters:
            value = values.get(parameter, ...)
            tensors = [_Argument(parameter, name, leaf) for name, leaf in leaves(parameter, value) if leaf is ...]
            arguments += tensors or [_Argument(parameter, parameter, value)]
        return arguments

    def _annotated(self, annotation: OperatorAnnotation, arguments: Sequence[_Argument]) -> list[Tensor | None]:
        """Return the annotated tensor of each argument: an input each, or one input for all tensors of a parameter."""
        inputs = annotation.inputs
        last = max((index for index, argument in enumerate(arguments) if argument.value is ...), default=-1)
        if last >= len(inputs):
            by_parameter = dict(zip(self.parameters, inputs, strict=False))
            return [by_parameter.get(argument.parameter) for argument in arguments]
        if len(inputs) > len(arguments):
            listed = ", ".join(f"'{argument.name}'" for argument in arguments)
            raise self.error(f"the annotation has {len(inputs)} inputs, but this call only the arguments {listed}")
        return [*inputs, *[None] * (len(arguments) - len(inputs))]

    def fit(self, shapes: Sequence[Shape], values: Mapping[str, object]) -> Fitted:
        """Fit the annotation to tensors of these shapes and to these non-tensor arguments."""
        annotation = self.annotation_for(shapes, values)
        remaining_shapes = iter(shapes)
        names: list[str] = []
        tensors: list[Tensor | None] = []
        argument_shapes: list[Shape | None] = []
        arguments = self._flat_arguments(values)
        for argument, tensor in zip(arguments, self._annotated(annotation, arguments), strict=True):
            shape = next(remaining_shapes) if argument.value is ... else None
            if shape is not None and tensor is None:
                raise self.error(
                    f"argument '{argument.name}' is an array: write its dimensions in the annotation, `1` for a scalar"
                )
            is_missing = argument.value is None and argument.name in self._optional
            names.append(argument.name)
            tensors.append(None if is_missing else tensor)
            argument_shapes.append(shape)
        try:
            return fit(OperatorAnnotation(tuple(tensors), annotation.outputs), names, argument_shapes, values)
        except AnnotationError as mistake:
            raise self.error(str(mistake)) from None

    def fit_call(self, call: OperatorCall, shapes: Sequence[Shape]) -> Fitted:
        """Fit the annotation of a call, with its transforms, to operands of these shapes."""
        stages = [shapes]
        for transform in reversed(call.transforms):
            stages.append(transform.shapes_before(stages[-1]))
        fitted = self.fit(stages.pop(), dict(call.arguments))
        for transform in call.transforms:
            fitted = transform.apply(fitted, stages.pop())
        return fitted

    def rule(self, call: OperatorCall, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> OperatorRule:
        """Return the sharding rule of a call whose operands and results have these shapes."""
        return operator_rule(self.fit_call(call, inputs), inputs, outputs)

    @abstractmethod
    def module(self, call: OperatorCall, types: Sequence[Attribute]) -> ModuleOp:
        """Return a module whose `main` computes a call with operands of these types."""

    @abstractmethod
    def refusal(self, call: OperatorCall, types: Sequence[Attribute]) -> str | None:
        """Return why a call with operands of these types cannot be computed; None if it can."""

    @abstractmethod
    def sees_padding(self, call: OperatorCall, types: Sequence[Attribute]) -> bool:
        """Return whether padded elements affect a call other than in the padding of its results.

        For example, a callback sees all elements, and the number of loop iterations may depend on all of them.
        """

    @abstractmethod
    def replaces(self, other: "Operator") -> bool:
        """Return whether this is a redefinition of `other`, for example by a notebook cell that is run twice."""

    def error(self, problem: str) -> AnnotationError:
        """Return an error about this operator."""
        return AnnotationError(f"operator '{self.name}': {problem}")

    def _checked(self, text: str) -> OperatorAnnotation:
        try:
            annotation = parse_operator(text)
        except AnnotationError as mistake:
            raise self.error(str(mistake)) from None
        if len(annotation.inputs) > len(self.parameters) and not self._containers:
            inputs, parameters = len(annotation.inputs), len(self.parameters)
            raise self.error(f"the annotation has {inputs} inputs, but the function only {parameters} arguments")
        for name in annotation.unknown_outputs:
            if name not in self.parameters:
                raise self.error(f"output identifier '{name}' is in no input, and no argument has that name")
        return annotation


def _of_function(call: OperatorCall, shapes: Sequence[Shape]) -> tuple[Sequence[Shape], float]:
    """Return the operand shapes of the function that a transformed call computes, and how many times it does so."""
    times = 1.0
    for transform in reversed(call.transforms):
        if isinstance(transform, Batched):
            times *= next(shape[0] for shape, is_batch in zip(shapes, transform.batch, strict=True) if is_batch)
        times *= _TIMES.get(type(transform), 1.0)
        shapes = transform.shapes_before(shapes)
    return shapes, times
