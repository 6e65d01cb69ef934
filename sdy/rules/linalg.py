"""Rules of the `linalg` dialect: the loops of an operation are its factors.

An indexing map defines the element of a tensor that each loop iteration accesses, and so the dimension that is sharded
with a loop:

    linalg.matmul      (i, j, k) -> (i, k)    (i, j, k) -> (k, j)    (i, j, k) -> (i, j)
                       ([i, k], [k, j], [i, j])->([i, j]) reduction={k}

The initial values of the results, `outs`, have the shardings of the results. If a reduction loop is sharded, the
combined result includes them once, not once per shard.
"""

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from sdy.ir.shapes import shape_of
from sdy.rules.annotated_operations import annotate
from sdy.rules.builder import NEED_REPLICATION, PERMUTATION, REDUCTION, RuleBuilder
from sdy.rules.elementwise import pointwise
from sdy.rules.linalg_loops import indexed_operation
from sdy.rules.registry import NoRule, register, register_without_rule

if TYPE_CHECKING:
    from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
    from xdsl.dialects.linalg.ops import BroadcastOp, ReduceOp

ELEMENTWISE = """
    abs add ceil copy div div_unsigned erf exp fill floor log max min mul negf powf reciprocal round rsqrt select
    sqrt square sub tanh
"""
"""Elementwise operations: each loop is a dimension of all tensors; scalars have no dimensions."""

INDEXED = """
    generic matmul quantized_matmul transpose pooling_nchw_max conv_2d_nchw_fchw conv_2d_ngchw_fgchw
    conv_2d_ngchw_gfchw conv_2d_nhwc_fhwc conv_2d_nhwc_hwcf conv_2d_nhwgc_gfhwc
"""
"""Other operations whose indexing maps xDSL provides."""

PRODUCTS = {
    "dot": "k, k, -> reduction={k}",
    "matvec": "i k, k, i -> i reduction={k}",
    "vecmat": "k, k j, j -> j reduction={k}",
    "batch_matmul": "b i k, b k j, b i j -> b i j reduction={k}",
    "batch_matvec": "b i k, b k, b i -> b i reduction={k}",
    "batch_vecmat": "b k, b k j, b j -> b j reduction={k}",
    "batch_reduce_matmul": "b i k, b k j, i j -> i j reduction={b, k}",
}
"""Products that xDSL does not define, so they are parsed only in the generic form: lhs, rhs, init -> result."""


@register(*(f"linalg.{name}" for name in INDEXED.split()), looks_around=True)
def by_loops(op: "LinalgStructuredOperation", rule: RuleBuilder) -> None:
    """Add a factor for each loop. An operation on buffers has no rule."""
    _check_on_tensors(op)
    indexed = indexed_operation(op)
    sides = (indexed.operands, indexed.results)
    for number, loop in indexed.loops.items():
        if loop.size == loop.extent or loop.size > 1:
            places = [
                {
                    tensor: dim
                    for tensor, dims in enumerate(side)
                    for dim, index in dims.split.items()
                    if index.strides and number in index.strides
                }
                for side in sides
            ]
            rule.add(loop.size, places[0], places[1], loop.kind, blocked=loop.kind is PERMUTATION and rule.conservative)
    for side, tensors in enumerate(sides):
        for tensor, dims in enumerate(tensors):
            for dim, index in dims.whole.items():
                if index.size != 1:
                    place = {tensor: dim}
                    rule.add(index.size, {} if side else place, place if side else {}, NEED_REPLICATION)


@register("linalg.broadcast")
def broadcast(op: "BroadcastOp", rule: RuleBuilder) -> None:
    """Add the factors `([i], [i, j])->([i, j])`: input, init -> result."""
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
    """Add the factors `([i, j], [i])->([i]) reduction={j}`: input, init -> result."""
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
