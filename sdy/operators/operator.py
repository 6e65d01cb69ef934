"""A function with an annotation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.operators.annotation import OperatorAnnotation
from sdy.operators.call import OperatorCall
from sdy.operators.notation import parse_operator
from sdy.operators.rules import OperatorRule, operator_rule
from sdy.operators.shapes import Fitted, Shape, fit
from sdy.rules.annotated_factors import AnnotationError

T = TypeVar("T")

AnnotationMaker = Callable[..., object]
"""(shapes of the inputs, the other arguments by name) -> the text of an annotation."""


class Operator(ABC):
    """A function with an annotation of its first parameters.

    Raises:
        AnnotationError: the annotation can't be read, or doesn't fit the parameters. All of its messages name the
            operator and the argument.
    """

    def __init__(self, name: str, annotation: str | AnnotationMaker, parameters: Sequence[str]) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self._annotation = self._checked(annotation) if isinstance(annotation, str) else annotation

    @property
    def annotation(self) -> OperatorAnnotation | None:
        """The annotation, None if it is made anew for the shapes of each call."""
        return self._annotation if isinstance(self._annotation, OperatorAnnotation) else None

    def annotation_for(self, shapes: Sequence[Shape | None], values: Mapping[str, object]) -> OperatorAnnotation:
        """The annotation for arguments: the shape of each parameter, None for one that has a value instead."""
        if isinstance(self._annotation, OperatorAnnotation):
            return self._annotation
        given = dict(zip(self.parameters, shapes, strict=True))
        tensors = [index for index, shape in enumerate(shapes) if shape is not None]
        inputs = self.parameters[: tensors[-1] + 1 if tensors else 0]
        others = {name: value for name, value in values.items() if name not in inputs}
        made = self._annotation(*(values[name] if given[name] is None else given[name] for name in inputs), **others)
        if not isinstance(made, str):
            raise self.error(f"its annotation was made as {made!r}, which is no text")
        return self._checked(made)

    def tensor_names(self, call: OperatorCall) -> list[str]:
        """The names of the tensors that a call takes, which are the parameters that it gives no value."""
        return self._without(dict(call.arguments))

    def named(self, operands: Sequence[T], values: Mapping[str, object]) -> dict[str, T]:
        """The tensors among the arguments by their names."""
        return dict(zip(self._without(values), operands, strict=True))

    def _without(self, values: Mapping[str, object]) -> list[str]:
        return [name for name in self.parameters if name not in values]

    def fit(self, shapes: Sequence[Shape], values: Mapping[str, object]) -> Fitted:
        """The annotation fitted to tensors of these shapes and to the arguments that are no tensors."""
        tensors = self.named(shapes, values)
        given = [tensors.get(name) for name in self.parameters]
        annotation = self.annotation_for(given, values)
        count = len(annotation.inputs)
        unannotated = {name for name, tensor in zip(self.parameters, annotation.inputs, strict=False) if tensor is None}
        for name in tensors:
            if name in unannotated or name in self.parameters[count:]:
                raise self.error(f"argument '{name}' is an array: write its dimensions in the annotation")
        try:
            return fit(annotation, self.parameters[:count], given[:count], values)
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

    def error(self, problem: str) -> AnnotationError:
        """An error to raise about this operator."""
        return AnnotationError(f"operator '{self.name}': {problem}")

    def _checked(self, text: str) -> OperatorAnnotation:
        try:
            annotation = parse_operator(text)
        except AnnotationError as mistake:
            raise self.error(str(mistake)) from None
        if len(annotation.inputs) > len(self.parameters):
            inputs, parameters = len(annotation.inputs), len(self.parameters)
            raise self.error(f"the annotation has {inputs} inputs, but the function only {parameters} arguments")
        for name in annotation.unknown_outputs:
            if name not in self.parameters:
                raise self.error(f"output identifier '{name}' is in no input, and no argument has that name")
        return annotation
