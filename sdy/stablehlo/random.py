"""Random numbers."""

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from sdy.stablehlo.definition import define
from sdy.stablehlo.enums import RngAlgorithmAttr, RngDistributionAttr
from sdy.stablehlo.names import DefinedResultNames


@define
class RngOp(IRDLOperation):
    """Numbers drawn from a distribution with parameters a and b, from a generator that the backend keeps."""

    name = "stablehlo.rng"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    shape = operand_def(TensorType)
    rng_distribution = prop_def(RngDistributionAttr)
    result = result_def(TensorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$a `,` $b `,` $shape `,` `distribution` `=` $rng_distribution attr-dict `:` functional-type(operands, results)"
    )


@define
class RngBitGeneratorOp(IRDLOperation):
    """Random bits made of a state, and the next state."""

    name = "stablehlo.rng_bit_generator"
    rng_algorithm = prop_def(RngAlgorithmAttr)
    initial_state = operand_def(TensorType)
    output_state = result_def(TensorType)
    output = result_def(TensorType)
    traits = traits_def(Pure(), DefinedResultNames())
    assembly_format = (
        "$initial_state `,` `algorithm` `=` $rng_algorithm attr-dict `:` functional-type(operands, results)"
    )
