"""The loops of a `linalg` operation, and how each dimension of its tensors is indexed by them.

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
"""What splitting a loop asks of an operation, by the type of its iterator."""

_LINEAR = {AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul}


@dataclass
class Loop:
    """A loop of `extent` iterations. Its factor has a `size` that is less where the dimensions have no room for it."""

    extent: int
    size: int
    kind: FactorKind


class Index(NamedTuple):
    """The index of a dimension: `offset` plus each loop times its stride; None where it is not such a sum."""

    size: int
    strides: dict[int, int] | None
    offset: int = 0


class IndexedTensor(NamedTuple):
    """The dimensions that loops split, major to minor, and those that are needed whole."""

    split: dict[int, Index]
    whole: dict[int, Index]


class Indexed(NamedTuple):
    """An operation's loops, those that are the index of no dimension by themselves left out, and its tensors."""

    loops: dict[int, Loop]
    operands: list[IndexedTensor]
    results: list[IndexedTensor]


def indexed_operation(op: "LinalgStructuredOperation") -> Indexed:
    """How the operands and results of `op` are indexed by its loops.

    A parallel loop that a dimension is indexed by together with others moves elements between the devices that split
    it. Such loops share the dimension's size, as the window and what is within it do in a convolution. A dimension is
    needed whole if its index has no loop, or one that another dimension of the tensor has.
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
    """The loops that are the index of a dimension by themselves; one that the body computes with is indivisible."""
    kinds = [KINDS[iterator.data] for iterator in op.get_iterator_types()]
    for inner in operations(op):
        if inner.name == "linalg.index":
            kinds[cast("IndexOp", inner).dim.value.data] = NEED_REPLICATION
    extents = {loop: index.size for indices in operands for index in indices for loop in _alone(index)}
    return {loop: Loop(extent, extent, kinds[loop]) for loop, extent in sorted(extents.items())}


def _alone(index: Index) -> Sequence[int]:
    """The loop that is the whole of an index."""
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
    """Give the loops of a dimension their parts of its size, and say which of them move elements."""
    strides = index.strides or {}
    if _alone(index):
        return
    left = index.size
    for number in sorted(strides, key=lambda number: -loops[number].extent):
        loop = loops[number]
        loop.size = min(loop.size, left)
        left //= max(loop.size, 1)
        if loop.kind is PASS_THROUGH:
            loop.kind = PERMUTATION


def _index(expression: AffineExpr, size: int) -> Index:
    """The index that is written so; a sum of loops with constant factors is what its values at the unit points say."""
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
