"""Expansion of operations without blocks of their own into operations that have them."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.ops import PropagationBarrierOp, ReshardOp, ShardingConstraintOp
from sdy.ir.editing import replace
from sdy.ir.shapes import shape_of
from sdy.ir.walking import innermost_first, operations_of
from sdy.passes.common.canonicalize import canonicalize
from sdy.passes.common.inline import inline
from sdy.passes.common.loops import carry_less
from sdy.passes.importing.expand_operations import expand_operations
from sdy.passes.importing.split_triangular_solves import split_triangular_solves
from sdy.stablehlo import ConvolutionOp, DotGeneralOp, DotOp, IotaOp, OptimizationBarrierOp, WhileOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import before, with_shape


def expand(module: ModuleOp) -> None:
    """Inline calls and decompositions, and replace the operations that `_EXPANSIONS` lists, in place.

    Triangular solves are annotated with their independent dimension.
    """
    inline(module)
    expand_operations(module)
    inline(module)
    for op in operations_of(module, *_EXPANSIONS):
        values = _EXPANSIONS[type(op)](op)
        if values is not None:
            replace(op, values)
    split_triangular_solves(module)
    for loop in innermost_first(operations_of(module, WhileOp)):
        carry_less(loop)
    canonicalize(module)


def _operands(op: Operation) -> Sequence[SSAValue]:
    """Return the operands of an operation that only constrains the compiler."""
    return op.operands


def _sum_of_nothing(op: Operation) -> Sequence[SSAValue] | None:
    """Return zeros for a product whose contracting dimension has no elements."""
    if all(0 not in shape_of(operand) for operand in op.operands) or 0 in shape_of(op.results[0]):
        return None
    return [before(op).filled(tensor_type(op.results[0]), 0)]


def _broadcast_iota(op: IotaOp) -> Sequence[SSAValue] | None:
    """Broadcast an iota of one dimension, so that no block depends on its position."""
    sizes, dim = shape_of(op.output), op.iota_dimension.value.data
    if len(sizes) < 2 or 0 in sizes:
        return None
    emit = before(op)
    indices = emit.insert(IotaOp(0, with_shape(op.output, [sizes[dim]])))
    return [emit.broadcast(indices, [dim], sizes)]


_EXPANSIONS: dict[type[Operation], Callable[[Any], Sequence[SSAValue] | None]] = {
    ConvolutionOp: _sum_of_nothing,
    DotGeneralOp: _sum_of_nothing,
    DotOp: _sum_of_nothing,
    IotaOp: _broadcast_iota,
    OptimizationBarrierOp: _operands,
    PropagationBarrierOp: _operands,
    ReshardOp: _operands,
    ShardingConstraintOp: _operands,
}
"""Functions that return the values that replace an operation's results, or None to keep it."""
