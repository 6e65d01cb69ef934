"""Random bits of signed integers and floats, which XLA does not compile, as bitcasts of unsigned integers."""

from typing import cast

from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, ModuleOp, Signedness, TensorType
from xdsl.rewriter import Rewriter

from sdy.ir.walking import operations_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import after
from sdy.stablehlo.random import RngBitGeneratorOp
from sdy.stablehlo.shape import BitcastConvertOp


def draw_unsigned_bits(module: ModuleOp) -> None:
    """Rewrite each `rng_bit_generator` of `module` to draw unsigned integers, and bitcast its result, in place.

    Before::

        %state, %0 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT
            : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xi32>)

    After::

        %state, %1 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT
            : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
        %0 = stablehlo.bitcast_convert %1 : (tensor<8xui32>) -> tensor<8xi32>
    """
    for op in operations_of(module, RngBitGeneratorOp):
        wanted = tensor_type(op.output)
        width = cast(FixedBitwidthType, wanted.element_type).bitwidth
        drawn = TensorType(IntegerType(width, Signedness.UNSIGNED), wanted.get_shape())
        if drawn == wanted:
            continue
        users = list(op.output.uses)
        bits = Rewriter.replace_value_with_new_type(op.output, drawn)
        converted = after(op).insert(BitcastConvertOp.create(operands=[bits], result_types=[wanted]))
        for use in users:
            use.operation.operands[use.index] = converted
