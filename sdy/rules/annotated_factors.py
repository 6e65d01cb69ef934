"""Parsed annotations, and their sharding rules for the shapes of an operation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from sdy.rule import OpShardingRule


class AnnotationError(ValueError):
    """An error in an annotation, or a mismatch of an annotation and shapes.

    Args:
        problem: The message.
        shown: The annotation with a caret below the error, if the error has a position.
        offset: The position of the error in the annotation, in characters.
    """

    def __init__(self, problem: str, shown: str = "", offset: int = 0) -> None:
        super().__init__(f"{problem}:\n{shown}" if shown else problem)
        self.problem = problem
        self.offset = offset


class AnnotatedTensor(NamedTuple):
    """A tensor of an annotation: the name of its ellipsis, if any, and the factor names of each further dimension."""

    ellipsis: str | None
    dims: tuple[tuple[str, ...], ...]


class _ShapedTensor(NamedTuple):
    """An annotated tensor with the shape of the operation's tensor, and the factor names of all dimensions."""

    name: str
    annotated: AnnotatedTensor
    shape: tuple[int, ...]
    factors: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Annotation:
    """A parsed annotation, with its explicit factor `sizes` and its `kinds` (kind -> factors)."""

    operands: tuple[AnnotatedTensor, ...]
    results: tuple[AnnotatedTensor, ...]
    sizes: Mapping[str, int]
    kinds: Mapping[str, tuple[str, ...]]

    def rule(self, operand_shapes: Sequence[Sequence[int]], result_shapes: Sequence[Sequence[int]]) -> OpShardingRule:
        """Return the custom rule of an operation with these shapes. Factors are numbered in order of appearance.

        Raises:
            AnnotationError: The annotation does not match the shapes.
        """
        operands = _fit("operand", self.operands, operand_shapes)
        results = _fit("result", self.results, result_shapes)
        _check_ellipses(operands + results)
        sizes = self._factor_sizes(operands + results)
        _check_compounds(operands + results, sizes)

        numbers = {factor: number for number, factor in enumerate(sizes)}

        def numbered(factors: Iterable[str]) -> tuple[int, ...]:
            return tuple(numbers[factor] for factor in factors)

        return OpShardingRule(
            tuple(sizes.values()),
            tuple(tuple(map(numbered, tensor.factors)) for tensor in operands),
            tuple(tuple(map(numbered, tensor.factors)) for tensor in results),
            is_custom=True,
            **{kind: tuple(sorted(numbered(factors))) for kind, factors in self.kinds.items()},
        )

    def _factor_sizes(self, tensors: Iterable[_ShapedTensor]) -> dict[str, int]:
        """Return the size of each factor, in order of appearance."""
        dims = [dim for tensor in tensors for dim in zip(tensor.factors, tensor.shape, strict=True)]
        sole: dict[str, int] = {}
        for factors, size in dims:
            if len(factors) == 1:
                sole[factors[0]] = min(size, sole.get(factors[0], size))
        return {factor: sole.get(factor, self.sizes.get(factor, 0)) for factors, _ in dims for factor in factors}


def _fit(kind: str, annotated: Sequence[AnnotatedTensor], shapes: Sequence[Sequence[int]]) -> list[_ShapedTensor]:
    """Match annotated tensors with shapes. The factors of an ellipsis are named `...0_0`, `...0_1`, etc."""
    if len(annotated) != len(shapes):
        raise AnnotationError(f"the annotation has {len(annotated)} {kind}(s), the operation {len(shapes)}")
    fitted: list[_ShapedTensor] = []
    for index, (tensor, shape) in enumerate(zip(annotated, shapes, strict=True)):
        extra = len(shape) - len(tensor.dims)
        if extra < 0 or (extra > 0 and tensor.ellipsis is None):
            raise AnnotationError(
                f"{kind} {index} has {len(tensor.dims)} dimension(s) in the annotation, but is of rank {len(shape)}"
            )
        leading = tuple((f"{tensor.ellipsis}_{dim}",) for dim in range(extra))
        fitted.append(_ShapedTensor(f"{kind} {index}", tensor, tuple(shape), leading + tensor.dims))
    return fitted


def _check_ellipses(tensors: Iterable[_ShapedTensor]) -> None:
    """Check that each ellipsis stands for the same sizes in all tensors."""
    seen: dict[str, tuple[int, ...]] = {}
    for tensor in tensors:
        ellipsis, dims = tensor.annotated
        if ellipsis is not None:
            sizes = tensor.shape[: len(tensor.shape) - len(dims)]
            if seen.setdefault(ellipsis, sizes) != sizes:
                raise AnnotationError(f"an ellipsis stands for dimensions {seen[ellipsis]} and for {sizes}")


def _check_compounds(tensors: Iterable[_ShapedTensor], sizes: Mapping[str, int]) -> None:
    """Check that the sizes of the factors of each dimension multiply to the dimension's size."""
    for tensor in tensors:
        for dim, (factors, size) in enumerate(zip(tensor.factors, tensor.shape, strict=True)):
            product = prod(sizes[factor] for factor in factors)
            if len(factors) > 1 and product != size:
                listed = " ".join(f"{factor}={sizes[factor]}" for factor in factors)
                raise AnnotationError(
                    f"dimension {dim} of {tensor.name} is {size}, but the product of ({listed}) is {product}"
                )
