"""The `linalg` dialect: the loops of an operation are its factors.

An indexing map says which element of a tensor an iteration of the loops touches, and so which of its dimensions is
split where a loop is:

    linalg.matmul      (i, j, k) -> (i, k)    (i, j, k) -> (k, j)    (i, j, k) -> (i, j)
                       ([i, k], [k, j], [i, j])->([i, j]) reduction={k}

The tensors that results start from, `outs`, are split as the results are. Where a reduction is split, they count once
in what the parts are combined to, not once for each part.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from sdy.dialect.walk import operations
from sdy.rule import FactorKind
from sdy.rules.annotation import annotate
from sdy.rules.builder import NEED_REPLICATION, PASS_THROUGH, PERMUTATION, REDUCTION, RuleBuilder, shape_of
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import NoRule, register, register_without_rule

if TYPE_CHECKING:
    from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
    from xdsl.dialects.linalg.ops import BroadcastOp, IndexOp, ReduceOp

KINDS = {"parallel": PASS_THROUGH, "reduction": REDUCTION, "window": NEED_REPLICATION}
"""What splitting a loop asks of an operation, by the type of its iterator."""

ELEMENTWISE = """
    abs add ceil copy div div_unsigned erf exp fill floor log max min mul negf powf reciprocal round rsqrt select
    sqrt square sub tanh
"""
"""Operations whose loops are the dimensions of each of their tensors; scalars have none."""

INDEXED = """
    generic matmul quantized_matmul transpose pooling_nchw_max conv_2d_nchw_fchw conv_2d_ngchw_fgchw
    conv_2d_ngchw_gfchw conv_2d_nhwc_fhwc conv_2d_nhwc_hwcf conv_2d_nhwgc_gfhwc
"""
"""The other operations whose indexing maps xDSL knows."""

PRODUCTS = {
    "dot": "k, k, -> reduction={k}",
    "matvec": "i k, k, i -> i reduction={k}",
    "vecmat": "k, k j, j -> j reduction={k}",
    "batch_matmul": "b i k, b k j, b i j -> b i j reduction={k}",
    "batch_matvec": "b i k, b k, b i -> b i reduction={k}",
    "batch_vecmat": "b k, b k j, b j -> b j reduction={k}",
    "batch_reduce_matmul": "b i k, b k j, i j -> i j reduction={b, k}",
}
"""Products that xDSL doesn't have, so that they are read in their generic form only: lhs, rhs, init -> result."""


class _Tensor(NamedTuple):
    """The shape of an operand or a result, and the index of each of its dimensions, in terms of the loops."""

    shape: tuple[int, ...]
    indices: tuple[AffineExpr, ...]


@register(*(f"linalg.{name}" for name in INDEXED.split()), looks_around=True)
def indexed(op: "LinalgStructuredOperation", rule: RuleBuilder) -> None:
    """A factor for each loop, in each dimension that the loop is the index of.

    A parallel loop that an index is otherwise made of, as in `i * 2 + j`, moves elements between the devices that
    split it. Any other dimension is needed whole, and so is a loop whose index the body computes with. An operation
    on buffers has no rule.
    """
    _check_on_tensors(op)
    kinds = [KINDS[iterator.data] for iterator in op.get_iterator_types()]
    for inner in operations(op):
        if inner.name == "linalg.index":
            kinds[cast("IndexOp", inner).dim.value.data] = NEED_REPLICATION
    operands = [
        _Tensor(shape_of(operand), attribute.data.results)
        for operand, attribute in zip(op.operands, op.get_indexing_maps(), strict=True)
    ]
    results = operands[len(operands) - len(op.results) :]
    sizes = _sizes((*operands, *results))
    places: list[tuple[dict[int, int], dict[int, int]]] = [({}, {}) for _ in kinds]
    moving: set[int] = set()
    whole: list[tuple[int, dict[int, int], dict[int, int]]] = []
    for side, tensors in enumerate((operands, results)):
        for number, tensor in enumerate(tensors):
            for dim, index in enumerate(tensor.indices):
                loop = _loop(index, kinds)
                if loop in sizes and number not in places[loop][side]:
                    places[loop][side][number] = dim
                    if not isinstance(index, AffineDimExpr):
                        moving.add(loop)
                elif tensor.shape[dim] != 1:
                    whole.append((tensor.shape[dim], *(({number: dim}, {}) if side == 0 else ({}, {number: dim}))))
    for loop, size in sorted(sizes.items()):
        kind = PERMUTATION if loop in moving else kinds[loop]
        rule.add(size, *places[loop], kind, blocked=loop in moving and rule.conservative)
    for size, in_operands, in_results in whole:
        rule.add(size, in_operands, in_results, NEED_REPLICATION)


def _sizes(tensors: Sequence[_Tensor]) -> dict[int, int]:
    """The number of iterations of each loop that is the index of a dimension by itself."""
    return {
        index.position: size
        for tensor in tensors
        for size, index in zip(tensor.shape, tensor.indices, strict=True)
        if isinstance(index, AffineDimExpr)
    }


def _loop(index: AffineExpr, kinds: Sequence[FactorKind]) -> int | None:
    """The loop that splits a dimension of this index: it alone, or the only parallel one of several."""
    if isinstance(index, AffineDimExpr):
        return index.position
    parallel = [loop for loop in index.used_dims() if kinds[loop] is PASS_THROUGH]
    return parallel[0] if len(parallel) == 1 else None


@register("linalg.broadcast")
def broadcast(op: "BroadcastOp", rule: RuleBuilder) -> None:
    """`([i], [i, j])->([i, j])`: input, init -> result."""
    _check_on_tensors(op)
    added = set(op.dimensions.get_values())
    kept = 0
    for dim, size in enumerate(shape_of(op.init)):
        if dim in added:
            rule.add(size, {1: dim}, {0: dim})
        else:
            rule.add(size, {0: kept, 1: dim}, {0: dim})
            kept += 1


@register("linalg.reduce")
def reduce(op: "ReduceOp", rule: RuleBuilder) -> None:
    """`([i, j], [i])->([i]) reduction={j}`: input, init -> result."""
    _check_on_tensors(op)
    reduced = set(op.dimensions.get_values())
    kept = 0
    for dim, size in enumerate(shape_of(op.input)):
        if dim in reduced:
            rule.add(size, {0: dim}, {}, REDUCTION)
        else:
            rule.add(size, {0: dim, 1: kept}, {0: kept})
            kept += 1


def _check_on_tensors(op: Operation) -> None:
    if not op.results or not all(isinstance(type_, TensorType) for type_ in op.result_types):
        raise NoRule


register(*(f"linalg.{name}" for name in ELEMENTWISE.split()), elementwise=True)(pointwise)
for _name, _annotation in PRODUCTS.items():
    annotate(f"linalg.{_name}", _annotation)
register_without_rule("linalg.index")
