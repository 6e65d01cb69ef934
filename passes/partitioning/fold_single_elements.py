"""`sdy-fold-single-elements`: folding of sorts, reversals and indices of elements along dimensions of size 1."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from sdy.dialect.attributes import SHARDING_RULE
from sdy.dialect.ops import ConstantOp as ShardedConstantOp
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import has_elements, shape_of
from sdy.ir.walking import invalidate, operations_of
from sdy.passes.spmd.shards.elements import is_constant
from sdy.sharding import equivalent
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.emitter import Emitter, before
from sdy.stablehlo.mixed_elementwise import SelectOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.shape import ReverseOp
from sdy.stablehlo.sort import SortOp

_Fold = tuple[OpResult, SSAValue | None]
"""A result and the operand that it equals, or None if it is zero."""


class FoldSingleElementsPass(AnalysisPreservingPass):
    """Replace sorted or reversed elements of a dimension of size 1 by the operand, and the index of an element by 0.

    Devices then compute the index, instead of resharding it. Before::

        sdy.mesh @mesh = <["x"=8]>
        ... %0: tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}
        %values, %indices = chlo.top_k(%0, k = 1) [{"x"}, {}], [{}, {"x"}] : tensor<8x1xf32>, tensor<8x1xi32>

    After::

        %values, %1 = chlo.top_k(%0, k = 1) [{"x"}, {}], [{}, {"x"}] : tensor<8x1xf32>, tensor<8x1xi32>
        %indices = sdy.constant [{}, {"x"}] dense<0> : tensor<8x1xi32>

    An index is a result of a top-k, or of a reduction that selects between an initial value of 0 and an iota, as in an
    argmax. Operations with a custom sharding rule, unreduced axes or dynamic sizes are unchanged.
    """

    name = "sdy-fold-single-elements"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in operations_of(op, *_FOLDS):
            if not _may_fold(inner):
                continue
            for result, operand in _FOLDS[type(inner)](inner):
                invalidate(inner)
                result.replace_all_uses_with(_placed_like(result, operand, before(inner)))


def _may_fold(op: Operation) -> bool:
    values = [*op.operands, *op.results]
    shardings = [sharding for sharding in map(get_sharding, values) if sharding is not None]
    return (
        SHARDING_RULE not in op.attributes
        and all(has_elements(value.type) for value in values)
        and not any(sharding.unreduced for sharding in shardings)
    )


def _placed_like(result: OpResult, operand: SSAValue | None, emit: Emitter) -> SSAValue:
    """Emit `operand`, or zeros, with the sharding of `result`."""
    sharding = get_sharding(result)
    if operand is None:
        zeros = emit.insert(ShardedConstantOp(emit.splat(tensor_type(result), 0)))
        if sharding is not None:
            set_sharding(zeros, sharding)
        return zeros
    if sharding is None or equivalent(get_sharding(operand), sharding):
        return operand
    return emit.insert(ReshardOp(operand, sharding))


def _of_top_k(op: TopKOp) -> Iterator[_Fold]:
    if shape_of(op.operand)[-1] == 1:
        yield op.indices, None


def _of_sort(op: SortOp) -> Iterator[_Fold]:
    if shape_of(op.inputs[0])[op.dimension.value.data] == 1:
        yield from zip(op.res, op.inputs, strict=True)


def _of_reverse(op: ReverseOp) -> Iterator[_Fold]:
    if all(shape_of(op.operand)[dim] == 1 for dim in op.dimensions.get_values()):
        yield op.result, op.operand


def _of_reduction(op: ReduceOp) -> Iterator[_Fold]:
    dims, count = op.dimensions.get_values(), len(op.inputs)
    if any(shape_of(op.inputs[0])[dim] != 1 for dim in dims) or (terminator := op.body.block.last_op) is None:
        return
    for index, (result, element, init) in enumerate(zip(op.res, op.inputs, op.init_values, strict=True)):
        is_index = isinstance(element.owner, IotaOp) and element.owner.iota_dimension.value.data in dims
        pair = {op.body.block.args[index], op.body.block.args[count + index]}
        if is_index and is_constant(init, 0) and _selects(terminator.operands[index], pair):
            yield result, None


def _selects(value: SSAValue, choices: Collection[SSAValue]) -> bool:
    """Return whether `value` is one of `choices`, or selects between them."""
    if isinstance(select := value.owner, SelectOp):
        return _selects(select.on_true, choices) and _selects(select.on_false, choices)
    return value in choices


_FOLDS: dict[type[Operation], Callable[[Any], Iterator[_Fold]]] = {
    ReduceOp: _of_reduction,
    ReverseOp: _of_reverse,
    SortOp: _of_sort,
    TopKOp: _of_top_k,
}
"""Generators of the results to replace, by class of operation."""
