"""Analysis of the loops of a `linalg` operation, and of the indices of its tensors' dimensions.

linalg.generic over (i, j, k) of (8, 6, 3)

(i, j, k) -> (2 * i + k, j)     dimension 0: i in strides of 2 and k in strides of 1;  dimension 1: j
(i, j, k) -> (k)                dimension 0: k
(i, j, k) -> (i, j)             dimension 0: i;  dimension 1: j
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from sdy.ir.shapes import shape_of
from sdy.ir.walking import operations
from sdy.rule import FactorKind
from sdy.rules.builder import NEED_REPLICATION, PASS_THROUGH, PERMUTATION, REDUCTION

if TYPE_CHECKING:
    from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
    from xdsl.dialects.linalg.ops import IndexOp

KINDS = {"parallel": PASS_THROUGH, "reduction": REDUCTION, "window": NEED_REPLICATION}
"""The kind of a loop's factor, by its iterator type."""

_LINEAR = {AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul}


@dataclass
class Loop:
    """A loop of `extent` iterations. The `size` of its factor is smaller if a dimension cannot hold all factors."""

    extent: int
    size: int
    kind: FactorKind


class Index(NamedTuple):
    """The index of a dimension: `offset` plus each loop times its stride; `strides` is None if it is not linear."""

    size: int
    strides: dict[int, int] | None
    offset: int = 0


class IndexedTensor(NamedTuple):
    """The dimensions that can be sharded along loops, and those that need replication."""

    split: dict[int, Index]
    whole: dict[int, Index]


class Indexed(NamedTuple):
    """An operation's loops that are the entire index of some dimension, and its tensors."""

    loops: dict[int, Loop]
    operands: list[IndexedTensor]
    results: list[IndexedTensor]


def indexed_operation(op: "LinalgStructuredOperation") -> Indexed:
    """Analyze the indices of the operands and results of `op`.

    If several loops index a dimension, they share its size, like the output position and the window position in a
    convolution, and parallel loops among them become permutation factors: elements move between devices. A dimension
    needs replication if its index has no loop, or a loop that indexes another dimension of the tensor.
    """
    maps = [attribute.data.results for attribute in op.get_indexing_maps()]
    operands = [
        [_index(expression, size) for expression, size in zip(results, shape_of(operand), strict=True)]
        for results, operand in zip(maps, op.operands, strict=True)
    ]
    loops = _loops(op, operands)
    tensors = [_tensor(indices, loops) for indices in operands]
    for tensor in tensors:
        for index in tensor.split.values():
            _share(index, loops)
    return Indexed(loops, tensors, tensors[len(tensors) - len(op.results) :])


def _loops(op: "LinalgStructuredOperation", operands: Sequence[Sequence[Index]]) -> dict[int, Loop]:
    """Return the loops that are the entire index of some dimension; loops that the body reads need replication."""
    kinds = [KINDS[iterator.data] for iterator in op.get_iterator_types()]
    for inner in operations(op):
        if inner.name == "linalg.index":
            kinds[cast("IndexOp", inner).dim.value.data] = NEED_REPLICATION
    extents = {loop: index.size for indices in operands for index in indices for loop in _sole_loop(index)}
    return {loop: Loop(extent, extent, kinds[loop]) for loop, extent in sorted(extents.items())}


def _sole_loop(index: Index) -> Sequence[int]:
    """Return the loop that is the entire index, if there is one, as a sequence."""
    return list(index.strides) if index.strides and [*index.strides.values(), index.offset] == [1, 0] else []


def _tensor(indices: Sequence[Index], loops: Mapping[int, Loop]) -> IndexedTensor:
    tensor = IndexedTensor({}, {})
    used: set[int] = set()
    for dim, index in enumerate(indices):
        strides = index.strides or {}
        is_split = strides and strides.keys() <= loops.keys() and not strides.keys() & used
        (tensor.split if is_split else tensor.whole)[dim] = index
        used |= strides.keys()
    return tensor


def _share(index: Index, loops: Mapping[int, Loop]) -> None:
    """Distribute the size of a dimension among its loops, and make parallel loops permutation factors."""
    strides = index.strides or {}
    if _sole_loop(index):
        return
    left = index.size
    for number in sorted(strides, key=lambda number: -loops[number].extent):
        loop = loops[number]
        loop.size = min(loop.size, left)
        left //= max(loop.size, 1)
        if loop.kind is PASS_THROUGH:
            loop.kind = PERMUTATION


def _index(expression: AffineExpr, size: int) -> Index:
    """Convert an affine expression to an index; a linear one is determined by its values at the unit points."""
    if not _is_linear(expression):
        return Index(size, None)
    used = sorted(expression.used_dims())
    count = max(used, default=-1) + 1

    def at(loop: int | None) -> int:
        return expression.eval([int(number == loop) for number in range(count)], [])

    offset = at(None)
    strides = {loop: at(loop) - offset for loop in used}
    return Index(size, {loop: stride for loop, stride in strides.items() if stride}, offset)


def _is_linear(expression: AffineExpr) -> bool:
    if isinstance(expression, AffineBinaryOpExpr):
        return expression.kind in _LINEAR and _is_linear(expression.lhs) and _is_linear(expression.rhs)
    return True
