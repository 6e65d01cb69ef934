"""Transforms of annotated operators: gradient, tangent, batching, padding, and random keys as data.

    m^ kd+, kd+ n -> m^ n                        the operator
    m^ kd+, kd+ n+, m^ n+ -> m^ kd+, kd+ n+      its gradient, with the gradient of the output as an input
    m^ kd+, kd+ n, m^ kd+, kd+ n -> m^ n         its tangent, with the tangents of the inputs as inputs
    batch' m^ kd+, kd+ n -> batch' m^ n          its batched form, with a shared second input

Transforms compose: the gradient of a gradient, a batched gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sdy.operators.annotation import Identifier, OperatorAnnotation, Reduction, Tensor
from sdy.operators.shapes import Fitted, Shape


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient with respect to the inputs `of`; its inputs are all inputs, then the gradients of the outputs `at`.

    Inputs and outputs are tensors; there are `count` inputs. If an identifier is sharded, each device computes the
    gradients of its own shards of the inputs that have it; the gradients of the other inputs are partial sums.
    Therefore all identifiers that can be sharded have a `+` in the gradient's annotation.
    """

    count: int
    of: tuple[int, ...]
    at: tuple[int, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the gradient of an operator. `shapes` are those of the gradient's operands."""
        annotation = fitted.annotation

        def summed(identifier: Identifier) -> Identifier:
            is_unshardable = annotation.unshardable_reason(identifier.name) is not None
            return replace(identifier, reduction=Reduction.UNSHARDABLE if is_unshardable else Reduction.SUM)

        changed = annotation.mapped(lambda tensor: tuple(tuple(map(summed, dim)) for dim in tensor))
        inputs, outputs = changed.tensor_inputs, changed.tensor_outputs
        gradient = OperatorAnnotation(
            (*inputs, *(outputs[index] for index in self.at)), tuple(inputs[index] for index in self.of)
        )
        return replace(fitted, annotation=gradient)

    def shapes_before(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """Return the shapes of the operator's operands, given those of the gradient's."""
        return shapes[: self.count]


@dataclass(frozen=True, slots=True)
class Tangent:
    """The tangents of the outputs `at`; its inputs are all inputs, then the tangents of the inputs `of`.

    Inputs and outputs are tensors; there are `count` inputs. A tangent has the sharding of its input or output, and the
    tangent of a partial sum is a partial sum.
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
    """The operator batched over a new leading dimension of the inputs with `batch`; other inputs are shared.

    All outputs have the new dimension.
    """

    batch: tuple[bool, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the batched operator. `shapes` are those of its operands."""
        annotation = fitted.annotation
        size = next(shape[0] for shape, is_batch in zip(shapes, self.batch, strict=True) if is_batch)
        # No argument or user-defined identifier can have this name.
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
        """Return the shapes of the operator's operands, given those of the batched operator's."""
        return [shape[1:] if is_batch else shape for shape, is_batch in zip(shapes, self.batch, strict=True)]


@dataclass(frozen=True, slots=True)
class Padded:
    """The operator on the leading part of padded operands, with results padded with zeros at the end of dimensions.

    The operator's own operands have the shapes `operands`, the padded results the shapes `results`.
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the operator on padded tensors. `shapes` are those of the padded operands.

        A padded identifier is the only identifier of its dimension.
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
    """The operator with random keys passed as their integer data, which have one more dimension.

    Each key is a tuple of the operand or result number, the name of the key implementation, the rank, and the number
    of integers per key.
    """

    operands: tuple[tuple[int, str, int, int], ...]
    results: tuple[tuple[int, str, int, int], ...]

    def apply(self, fitted: Fitted, shapes: Sequence[Shape]) -> Fitted:
        """Return the annotation of the operator on key data. `shapes` are those of the operands with key data."""

        def with_data(tensors: Sequence[Tensor], keys: Sequence[tuple[int, str, int, int]]) -> tuple[Tensor, ...]:
            changed = list(tensors)
            for index, _, rank, size in keys:
                changed[index] = (*changed[index][:rank], (Identifier(str(size), Reduction.UNSHARDABLE),))
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
