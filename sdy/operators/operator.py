"""A function with an annotation."""

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
from sdy.rules.annotated_factors import AnnotationError

T = TypeVar("T")

AnnotationMaker = Callable[..., object]
"""(shapes of the inputs, the other arguments by name) -> the text of an annotation."""


class _Passed(NamedTuple):
    """A tensor or another value that is passed to an operator, by its name or its path in an argument.

    The value of a tensor is an Ellipsis.
    """

    parameter: str
    name: str
    value: object


class Operator(ABC):
    """A function with an annotation of its first parameters.

    Raises:
        AnnotationError: the annotation can't be read, or doesn't fit the parameters. All of its messages name the
            operator and the argument.
    """

    def __init__(
        self,
        name: str,
        annotation: str | AnnotationMaker,
        parameters: Sequence[str],
        optional: Collection[str] = (),
        containers: Collection[str] = (),
    ) -> None:
        """Make an operator whose parameters `optional` may be None, and `containers` may hold several tensors."""
        self.name = name
        self.version = 0
        self.parameters = tuple(parameters)
        self._optional = frozenset(optional)
        self._containers = frozenset(containers)
        self._annotation = self._checked(annotation) if isinstance(annotation, str) else annotation

    @property
    def annotation(self) -> OperatorAnnotation | None:
        """The annotation, None if it is made anew for the shapes of each call."""
        return self._annotation if isinstance(self._annotation, OperatorAnnotation) else None

    def annotation_for(self, shapes: Sequence[Shape], values: Mapping[str, object]) -> OperatorAnnotation:
        """Return the annotation for tensors of these shapes and for the arguments that are no tensors."""
        if isinstance(self._annotation, OperatorAnnotation):
            return self._annotation
        given = self.arguments(shapes, values)
        with_tensors = [index for index, name in enumerate(self.parameters) if self._has_tensors(name, values)]
        inputs = self.parameters[: with_tensors[-1] + 1 if with_tensors else 0]
        others = {name: value for name, value in values.items() if name not in inputs}
        made = self._annotation(*(given[name] for name in inputs), **others)
        if not isinstance(made, str):
            raise self.error(f"its annotation was made as {made!r}, which is no text")
        return self._checked(made)

    def arguments(self, tensors: Sequence[T], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, of `values` those that hold tensors with the tensors in their places."""
        each = iter(tensors)
        return {
            name: with_leaves(value, iter([next(each) if leaf is ... else leaf for _, leaf in leaves(name, value)]))
            for name, value in ((name, values.get(name, ...)) for name in self.parameters)
        }

    def tensor_names(self, call: OperatorCall) -> list[str]:
        """Return the names of the tensors that a call takes: of parameters without a value, or within one."""
        return [passed.name for passed in self._passed(dict(call.arguments)) if passed.value is ...]

    def _has_tensors(self, name: str, values: Mapping[str, object]) -> bool:
        return holds_tensors(values.get(name, ...))

    def _passed(self, values: Mapping[str, object]) -> list[_Passed]:
        """The arguments that are passed; of containers, only their tensors."""
        passed: list[_Passed] = []
        for parameter in self.parameters:
            value = values.get(parameter, ...)
            tensors = [_Passed(parameter, name, leaf) for name, leaf in leaves(parameter, value) if leaf is ...]
            passed += tensors or [_Passed(parameter, parameter, value)]
        return passed

    def _annotated(self, annotation: OperatorAnnotation, passed: Sequence[_Passed]) -> list[Tensor | None]:
        """How all that is passed is annotated: each by an input, or the tensors of each argument by one for all."""
        inputs = annotation.inputs
        last = max((index for index, each in enumerate(passed) if each.value is ...), default=-1)
        if last >= len(inputs):
            by_parameter = dict(zip(self.parameters, inputs, strict=False))
            return [by_parameter.get(each.parameter) for each in passed]
        if len(inputs) > len(passed):
            listed = ", ".join(f"'{each.name}'" for each in passed)
            raise self.error(f"the annotation has {len(inputs)} inputs, but this call only the arguments {listed}")
        return [*inputs, *[None] * (len(passed) - len(inputs))]

    def fit(self, shapes: Sequence[Shape], values: Mapping[str, object]) -> Fitted:
        """The annotation fitted to tensors of these shapes and to the arguments that are no tensors."""
        annotation = self.annotation_for(shapes, values)
        each = iter(shapes)
        names: list[str] = []
        tensors: list[Tensor | None] = []
        given: list[Shape | None] = []
        passed_values = self._passed(values)
        for passed, tensor in zip(passed_values, self._annotated(annotation, passed_values), strict=True):
            shape = next(each) if passed.value is ... else None
            if shape is not None and tensor is None:
                raise self.error(
                    f"argument '{passed.name}' is an array: write its dimensions in the annotation, `1` for a scalar"
                )
            is_missing = passed.value is None and passed.name in self._optional
            names.append(passed.name)
            tensors.append(None if is_missing else tensor)
            given.append(shape)
        try:
            return fit(OperatorAnnotation(tuple(tensors), annotation.outputs), names, given, values)
        except AnnotationError as mistake:
            raise self.error(str(mistake)) from None

    def fit_call(self, call: OperatorCall, shapes: Sequence[Shape]) -> Fitted:
        """The annotation of what a call makes of the operator, fitted to operands of these shapes."""
        stages = [shapes]
        for transform in reversed(call.transforms):
            stages.append(transform.shapes_before(stages[-1]))
        fitted = self.fit(stages.pop(), dict(call.arguments))
        for transform in call.transforms:
            fitted = transform.apply(fitted, stages.pop())
        return fitted

    def rule(self, call: OperatorCall, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> OperatorRule:
        """The sharding rule of a call whose operands and results have these shapes."""
        return operator_rule(self.fit_call(call, inputs), inputs, outputs)

    @abstractmethod
    def module(self, call: OperatorCall, types: Sequence[Attribute]) -> ModuleOp:
        """A module whose `main` computes a call of operands of these types."""

    @abstractmethod
    def refusal(self, call: OperatorCall, types: Sequence[Attribute]) -> str | None:
        """Return why a call cannot be computed for operands of these types, None if it can."""

    @abstractmethod
    def sees_padding(self, call: OperatorCall, types: Sequence[Attribute]) -> bool:
        """Return whether a call does more with an element than to compute its results.

        A callback sees all elements, and the number of steps of a loop depends on all of them.
        """

    @abstractmethod
    def replaces(self, other: "Operator") -> bool:
        """Return whether this is `other` defined again, as by a cell of a notebook that is run twice."""

    def error(self, problem: str) -> AnnotationError:
        """An error to raise about this operator."""
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
