"""`sdy-draw-unsigned-bits`: draw random bits as unsigned integers, the only element type for which XLA compiles."""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, ModuleOp, Signedness, TensorType
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sdy.ir.walking import operations_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import after
from sdy.stablehlo.random import RngBitGeneratorOp
from sdy.stablehlo.shape import BitcastConvertOp


@dataclass(frozen=True)
class DrawUnsignedBitsPass(ModulePass):
    """Draw the bits of each `rng_bit_generator` as unsigned integers, and bitcast its result.

    Before::

        %state, %0 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT
            : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xi32>)

    After::

        %state, %1 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT
            : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
        %0 = stablehlo.bitcast_convert %1 : (tensor<8xui32>) -> tensor<8xi32>
    """

    name = "sdy-draw-unsigned-bits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for generator in operations_of(op, RngBitGeneratorOp):
            _draw_unsigned(generator)


def _draw_unsigned(op: RngBitGeneratorOp) -> None:
    wanted = tensor_type(op.output)
    width = cast(FixedBitwidthType, wanted.element_type).bitwidth
    drawn = TensorType(IntegerType(width, Signedness.UNSIGNED), wanted.get_shape())
    if drawn == wanted:
        return
    users = list(op.output.uses)
    bits = Rewriter.replace_value_with_new_type(op.output, drawn)
    converted = after(op).insert(BitcastConvertOp.create(operands=[bits], result_types=[wanted]))
    for use in users:
        use.operation.operands[use.index] = converted
