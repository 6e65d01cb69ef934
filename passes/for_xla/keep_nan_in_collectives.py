"""`sdy-keep-nan-in-collectives`: compute maxima and minima of devices on integer keys, which preserve NaN."""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.ir import OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.ir.shapes import num_elements
from sdy.ir.walking import operations_of
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.passes.spmd.shards.elements import IEEE_FLOATS
from sdy.sharding import Reduction
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.elementwise import MaxOp, MinOp, XorOp
from sdy.stablehlo.emitter import Emitter, after, before
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp
from sdy.stablehlo.reduction import reducer_body
from sdy.stablehlo.scatter import ScatterOp


@dataclass(frozen=True)
class KeepNanInCollectivesPass(ModulePass):
    """Rewrite each maximum or minimum collective of floats as one of integer keys.

    XLA's collectives, at least those of its CPU backend, drop a NaN of one device if another device has a number;
    `stablehlo.maximum` and `stablehlo.minimum` propagate it.

    Before::

        %1 = "stablehlo.all_reduce"(%0) ({maximum}) : (tensor<8xf32>) -> tensor<8xf32>

    After, where `key` maps a float to its bits, with all but the sign bit inverted if the sign is set, so that the
    order of the keys is that of the floats, and NaN to the greatest key (the least for a minimum)::

        %k = key(%0)
        %m = "stablehlo.all_reduce"(%k) ({maximum}) : (tensor<8xi32>) -> tensor<8xi32>
        %1 = key^-1(%m)

    If `%0` is a scatter with the same reduction, and its updates are no larger than its input, the scatter computes on
    keys too.
    """

    name = "sdy-keep-nan-in-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for collective in (*operations_of(op, AllReduceOp), *operations_of(op, ReduceScatterOp)):
            kind = region_reduction(collective.computation)
            element_type = tensor_type(collective.operands[0]).element_type
            has_nothing = any(0 in tensor_type(operand).get_shape() for operand in collective.operands)
            if kind in ("max", "min") and isinstance(element_type, IEEE_FLOATS) and not has_nothing:
                _reduce_as_keys(collective, kind, IntegerType(element_type.bitwidth))


def _reduce_as_keys(op: AllReduceOp | ReduceScatterOp, kind: Reduction, bits: IntegerType) -> None:
    for index, operand in enumerate(op.operands):
        if isinstance(operand.owner, ScatterOp) and _can_have_keys(operand.owner, kind):
            _scatter_keys(operand.owner, kind, bits)
        else:
            op.operands[index] = _key(before(op), operand, kind, bits)
    _reduce_keys(op.computation, kind, op.operands[0])
    for result in op.results:
        _convert_to_float(result, bits)


def _can_have_keys(op: ScatterOp, kind: Reduction) -> bool:
    """Return true if `op` has this reduction, its result has one use, and its updates are no larger than its input."""
    return (
        len(op.res) == 1
        and op.res[0].has_one_use()
        and num_elements(op.updates[0]) <= num_elements(op.inputs[0])
        and len(op.update_computation.block.ops) == 2
        and region_reduction(op.update_computation) == kind
    )


def _scatter_keys(op: ScatterOp, kind: Reduction, bits: IntegerType) -> None:
    """Convert the operands and the result of `op` to keys. Keys of its result alone would cost XLA another buffer."""
    input_, indices, update = op.operands
    op.operands = [_key(before(op), input_, kind, bits), indices, _key(before(op), update, kind, bits)]
    _reduce_keys(op.update_computation, kind, op.updates[0])
    [result] = op.res
    Rewriter.replace_value_with_new_type(result, TensorType(bits, tensor_type(result).get_shape()))


def _reduce_keys(region: Region, kind: Reduction, keys: SSAValue) -> None:
    """Replace the reducer in `region` by that of the element type of `keys`."""
    region.detach_block(0)
    region.add_block(reducer_body(MaxOp if kind == "max" else MinOp, keys).detach_block(0))


def _key(emit: Emitter, value: SSAValue, kind: Reduction, bits: IntegerType) -> SSAValue:
    is_nan = emit.compare(ComparisonDirection.NE, value, value)
    shape = tensor_type(value).get_shape()
    last = (1 << (bits.bitwidth - 1)) - 1 if kind == "max" else -1 << (bits.bitwidth - 1)
    key = _invert_negative(emit, emit.bitcast(value, bits))
    return emit.select(is_nan, emit.integers([last], shape, bits), key)


def _convert_to_float(result: OpResult, bits: IntegerType) -> None:
    """Convert the keys `result` to floats, after the all-gathers that directly follow."""
    element_type = tensor_type(result).element_type
    while isinstance(gather := result.get_user_of_unique_use(), AllGatherOp) and len(gather.results) == 1:
        Rewriter.replace_value_with_new_type(result, TensorType(bits, tensor_type(result).get_shape()))
        [result] = gather.results
    users = list(result.uses)
    key = Rewriter.replace_value_with_new_type(result, TensorType(bits, tensor_type(result).get_shape()))
    emit = after(result.owner)
    number = emit.bitcast(_invert_negative(emit, key), element_type)
    for use in users:
        use.operation.operands[use.index] = number


def _invert_negative(emit: Emitter, bits: SSAValue) -> SSAValue:
    """Invert all bits but the sign where the sign is set. The function is its own inverse."""
    shape, type_ = tensor_type(bits).get_shape(), cast(IntegerType, tensor_type(bits).element_type)
    is_negative = emit.compare(ComparisonDirection.LT, bits, emit.integers([0], shape, type_))
    inverted = emit.binary(XorOp, bits, emit.integers([(1 << (type_.bitwidth - 1)) - 1], shape, type_))
    return emit.select(is_negative, inverted, bits)
