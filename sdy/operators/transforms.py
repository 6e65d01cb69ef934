"""Transforms of an annotated operator: its gradient, its tangent, and many at once.

    m^ kd+, kd+ n -> m^ n                        the operator
    m^ kd+, kd+ n+, m^ n+ -> m^ kd+, kd+ n+      its gradient, which takes that of the output too
    m^ kd+, kd+ n, m^ kd+, kd+ n -> m^ n         its tangent, which takes those of the inputs too
    batch' m^ kd+, kd+ n -> batch' m^ n          many at once, which share the second input

One can be made of what another made: the gradient of the gradient, many gradients at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sdy.operators.annotation import Identifier, OperatorAnnotation, Reduction, Tensor
from sdy.operators.shapes import Fitted, Shape


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of the inputs `of`, from all inputs and then the gradients of the outputs `at`.

    Inputs and outputs are tensors; there are `count` inputs. Where an identifier is split, with a sum or without, each
    device finds the gradient of its own part of the inputs that have it. What it finds about the other inputs is one of
    the terms of a sum. Therefore whatever can be split has a `+` here.
    """

    count: int
    of: tuple[int, ...]
    at: tuple[int, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """The annotation of the gradient of an operator. `shapes` are those of what the gradient takes."""
        annotation = fitted.annotation

        def summed(identifier: Identifier) -> Identifier:
            whole = annotation.why_not_split(identifier.name) is not None
            return replace(identifier, reduction=Reduction.WHOLE if whole else Reduction.SUM)

        changed = annotation.mapped(lambda tensor: tuple(tuple(map(summed, dim)) for dim in tensor))
        inputs, outputs = changed.tensor_inputs, changed.tensor_outputs
        gradient = OperatorAnnotation(
            (*inputs, *(outputs[index] for index in self.at)), tuple(inputs[index] for index in self.of)
        )
        return replace(fitted, annotation=gradient)

    def shapes_before(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """The shapes of what the operator takes, when those are the shapes of what its gradient takes."""
        return shapes[: self.count]


@dataclass(frozen=True, slots=True)
class Tangent:
    """The tangents of the outputs `at`, from all inputs and then the tangents of the inputs `of`.

    Inputs and outputs are tensors; there are `count` inputs. A tangent is split as its input or output is, and a sum of
    outputs has the sum of their tangents.
    """

    count: int
    of: tuple[int, ...]
    at: tuple[int, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the tangent of an operator. `shapes` are those of the operands of the tangent."""
        inputs, outputs = fitted.annotation.tensor_inputs, fitted.annotation.tensor_outputs
        tangent = OperatorAnnotation(
            (*inputs, *(inputs[index] for index in self.of)), tuple(outputs[index] for index in self.at)
        )
        return replace(fitted, annotation=tangent)

    def shapes_before(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """Return the shapes of the operator's operands, given those of the tangent's."""
        return shapes[: self.count]


@dataclass(frozen=True, slots=True)
class Batched:
    """The operator on many inputs at once, each of which has a new first dimension or, if it is no `batch`, is shared.

    Each output has that dimension.
    """

    batch: tuple[bool, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """The annotation of many of an operator at once. `shapes` are those of what these take together."""
        annotation = fitted.annotation
        size = next(shape[0] for shape, is_batch in zip(shapes, self.batch, strict=True) if is_batch)
        # No argument has such a name, nor an identifier that a person wrote.
        name = "batch'"
        while name in fitted.sizes:
            name += "'"
        first = (Identifier(name, Reduction.SPATIAL),)

        def many(tensor: Tensor, is_batch: bool) -> Tensor:
            return (first, *tensor) if is_batch else tensor

        inputs = tuple(map(many, annotation.tensor_inputs, self.batch))
        outputs = tuple(many(tensor, True) for tensor in annotation.tensor_outputs)
        return Fitted(OperatorAnnotation(inputs, outputs), {**fitted.sizes, name: size})

    def shapes_before(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """The shapes of what one operator takes, when those are the shapes of what many take together."""
        return [shape[1:] if is_batch else shape for shape, is_batch in zip(shapes, self.batch, strict=True)]


@dataclass(frozen=True, slots=True)
class Padded:
    """The operator on the leading part of its operands, the results padded with zeros at the end of dimensions.

    The operands of the operator have the shapes `operands`, the padded results the shapes `results`.
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the operator on padded tensors. `shapes` are those of the padded operands.

        An identifier that is padded is a dimension by itself.
        """
        sizes = dict(fitted.sizes)
        for tensor, shape in zip(fitted.annotation.tensor_inputs, shapes, strict=True):
            for dim, size in zip(tensor, shape, strict=False):
                if len(dim) == 1:
                    sizes[dim[0].name] = size
        return replace(fitted, sizes=sizes)

    def shapes_before(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """Return the shapes of the operator's operands."""
        return self.operands


@dataclass(frozen=True, slots=True)
class KeyData:
    """The operator with random keys passed as the integers that they are made of, a dimension more.

    The keys are given by the number of the operand or result, the name of their implementation, their rank, and the
    number of integers of each.
    """

    operands: tuple[tuple[int, str, int, int], ...]
    results: tuple[tuple[int, str, int, int], ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the operator on the data of keys. `shapes` are those of the operands with data."""

        def with_data(tensors: Sequence[Tensor], keys: Sequence[tuple[int, str, int, int]]) -> tuple[Tensor, ...]:
            changed = list(tensors)
            for index, _, rank, size in keys:
                changed[index] = (*changed[index][:rank], (Identifier(str(size), Reduction.WHOLE),))
            return tuple(changed)

        annotation = OperatorAnnotation(
            with_data(fitted.annotation.tensor_inputs, self.operands),
            with_data(fitted.annotation.tensor_outputs, self.results),
        )
        return Fitted(annotation, fitted.sizes | {str(size): size for *_, size in (*self.operands, *self.results)})

    def shapes_before(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """Return the shapes of the operator's operands, keys among them."""
        ranks = {index: rank for index, _, rank, _ in self.operands}
        return [shape[: ranks.get(index, len(shape))] for index, shape in enumerate(shapes)]


Transform = Gradient | Tangent | Batched | Padded | KeyData
