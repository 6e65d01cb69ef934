"""`sdy-fold-empty-tensors`: folding of operations on tensors without elements."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ComplexType, IntegerType, ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.dialect.ops import ConstantOp as ShardedConstantOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass, erase, replace
from sdy.ir.fast_access import type_of
from sdy.ir.shapes import shape_of
from sdy.ir.walking import invalidate, operations, values_in
from sdy.passes.common.properties import is_pure
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import DynamicUpdateSliceOp


class FoldEmptyTensorsPass(AnalysisPreservingPass):
    """Replace each tensor without elements by a constant, and fold the operations that use such tensors.

    An empty slice does not depend on its operand, so no communication is needed for it.

    Before::

        %0 = stablehlo.slice %arg0 [0:8, 4:4] : (tensor<8x4xf32>) -> tensor<8x0xf32>
        %1 = stablehlo.concatenate %0, %arg0, dim = 1 : (tensor<8x0xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
        %2 = stablehlo.negate %1 : tensor<8x4xf32>

    After::

        %0 = stablehlo.negate %arg0 : tensor<8x4xf32>
    """

    name = "sdy-fold-empty-tensors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Most values share few types: each type is checked once.
        if not any(map(_is_empty, {id(type_of(value)): value for value in values_in(op)}.values())):
            return
        for inner in operations(op):
            if not is_pure(inner) or (inner.regions and not isinstance(inner, ReduceOp | ScatterOp)):
                continue
            if _has_empty_result(inner) and not isinstance(inner, ConstantOp | ShardedConstantOp):
                _replace(inner, _empty_results(inner))
            elif any(map(_is_empty, _elements(inner))) and (rewrite := _REWRITES.get(type(inner))) is not None:
                _replace(inner, rewrite(Emitter(InsertPoint.before(inner), inner), inner))
        invalidate(op)  # the emitter does not
        for inner in reversed(operations(op)):
            if inner.results and is_trivially_dead(inner):
                erase(inner)


def _is_empty(value: SSAValue) -> bool:
    return 0 in shape_of(value)


def _elements(op: Operation) -> Sequence[SSAValue]:
    """Return the operands that elements of the results come from; an empty index vector chooses a whole operand."""
    return op.updates if isinstance(op, ScatterOp) else op.operands


def _has_empty_result(op: Operation) -> bool:
    """Return whether all results are tensors without elements, of types that constants can have."""
    return (
        bool(op.results)
        and op.name.startswith("stablehlo.")
        and all(
            _is_empty(result) and isinstance(_element_type(result), AnyFloat | ComplexType | IntegerType)
            for result in op.results
        )
    )


def _element_type(value: SSAValue) -> Any:
    return cast(TensorType[Any], value.type).element_type


def _empty_results(op: Operation) -> list[SSAValue]:
    emit = Emitter(InsertPoint.before(op), op)
    return [_zeros(emit, result) for result in op.results]


def _zeros(emit: Emitter, result: SSAValue) -> SSAValue:
    """Emit zeros for `result`, as an `sdy.constant`, which canonicalization does not merge across shardings."""
    return emit.insert(ShardedConstantOp(emit.splat(cast(TensorType[Any], result.type), 0)))


def _replace(op: Operation, values: Sequence[SSAValue]) -> None:
    for result, value in zip(op.results, values, strict=True):
        sharding = get_sharding(result)
        if sharding is not None and value not in op.operands and get_sharding(value) is None:
            set_sharding(value, sharding)
    replace(op, values)


def _concatenate(emit: Emitter, op: ConcatenateOp) -> list[SSAValue]:
    inputs = [value for value in op.inputs if not _is_empty(value)]
    return [emit.concatenate(inputs, op.dimension.value.data)]


def _pad(emit: Emitter, op: PadOp) -> list[SSAValue]:
    return [emit.broadcast(op.padding_value, (), cast(TensorType[Any], op.result.type).get_shape())]


def _reduce(emit: Emitter, op: ReduceOp) -> list[SSAValue]:
    return [
        emit.broadcast(init, (), cast(TensorType[Any], result.type).get_shape())
        for init, result in zip(op.init_values, op.results, strict=True)
    ]


def _dot(emit: Emitter, op: DotGeneralOp) -> list[SSAValue]:
    return [_zeros(emit, op.result)]


def _update(emit: Emitter, op: DynamicUpdateSliceOp) -> list[SSAValue]:
    return [op.operand]


def _scatter(emit: Emitter, op: ScatterOp) -> list[SSAValue]:
    return [*op.inputs]


_REWRITES: dict[type[Operation], Callable[[Emitter, Any], list[SSAValue]]] = {
    ConcatenateOp: _concatenate,
    DotGeneralOp: _dot,
    DynamicUpdateSliceOp: _update,
    PadOp: _pad,
    ReduceOp: _reduce,
    ScatterOp: _scatter,
}
"""Rewrites of operations that take elements from an empty operand, and have results that are not empty."""
