"""What an annotation says, as values, and the sharding rule that it makes for the shapes of an operation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from sdy.rule import OpShardingRule


class AnnotationError(ValueError):
    """A mistake in an annotation, or shapes that it doesn't fit.

    The text is the `problem` and, where that is at one place, the annotation with a caret below it, as `shown`; so many
    characters are before it in the annotation as `offset` says.
    """

    def __init__(self, problem: str, shown: str = "", offset: int = 0) -> None:
        super().__init__(f"{problem}:\n{shown}" if shown else problem)
        self.problem = problem
        self.offset = offset


class AnnotatedTensor(NamedTuple):
    """The dimensions of a tensor, each the names of its factors, after those of its ellipsis, if any."""

    ellipsis: str | None
    dims: tuple[tuple[str, ...], ...]


class _ShapedTensor(NamedTuple):
    """An annotated tensor beside the shape of a tensor of the operation; `factors` are those of all its dimensions."""

    name: str
    annotated: AnnotatedTensor
    shape: tuple[int, ...]
    factors: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation that was read. `sizes` and `kinds` (kind -> factors) are as they were written."""

    operands: tuple[AnnotatedTensor, ...]
    results: tuple[AnnotatedTensor, ...]
    sizes: Mapping[str, int]
    kinds: Mapping[str, tuple[str, ...]]

    def rule(self, operand_shapes: Sequence[Sequence[int]], result_shapes: Sequence[Sequence[int]]) -> OpShardingRule:
        """The custom rule of an operation with these shapes. Factors are numbered as they first appear.

        Raises:
            AnnotationError: the annotation doesn't fit the shapes.
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
        """The factors in the order in which they first appear, and their sizes."""
        dims = [dim for tensor in tensors for dim in zip(tensor.factors, tensor.shape, strict=True)]
        whole: dict[str, int] = {}
        for factors, size in dims:
            if len(factors) == 1:
                whole[factors[0]] = min(size, whole.get(factors[0], size))
        return {factor: whole.get(factor, self.sizes.get(factor, 0)) for factors, _ in dims for factor in factors}


def _fit(kind: str, annotated: Sequence[AnnotatedTensor], shapes: Sequence[Sequence[int]]) -> list[_ShapedTensor]:
    """Annotated tensors beside shapes. The factors of an ellipsis are called `...0_0`, `...0_1`, etc."""
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
    """Each ellipsis stands for the same sizes wherever it's written."""
    seen: dict[str, tuple[int, ...]] = {}
    for tensor in tensors:
        ellipsis, dims = tensor.annotated
        if ellipsis is not None:
            sizes = tensor.shape[: len(tensor.shape) - len(dims)]
            if seen.setdefault(ellipsis, sizes) != sizes:
                raise AnnotationError(f"an ellipsis stands for dimensions {seen[ellipsis]} and for {sizes}")


def _check_compounds(tensors: Iterable[_ShapedTensor], sizes: Mapping[str, int]) -> None:
    """The factors of each dimension that has several multiply to its size."""
    for tensor in tensors:
        for dim, (factors, size) in enumerate(zip(tensor.factors, tensor.shape, strict=True)):
            product = prod(sizes[factor] for factor in factors)
            if len(factors) > 1 and product != size:
                listed = " ".join(f"{factor}={sizes[factor]}" for factor in factors)
                raise AnnotationError(f"dimension {dim} of {tensor.name} is {size}, but ({listed}) makes {product}")
