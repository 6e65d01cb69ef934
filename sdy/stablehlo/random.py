"""Random number generation."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import error
from sdy.ir.operation_key import VerifiedByConstants
from sdy.stablehlo.attributes.enums import RngAlgorithmAttr, RngDistribution, RngDistributionAttr
from sdy.stablehlo.checks.agreement import element_type, verify_matching_elements
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.checks.shape_operands import constant_integers
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.names import DefinedResultNames
from sdy.stablehlo.types.element_types import REAL, REAL_NUMBERS
from sdy.stablehlo.types.sizes import MAX_DIMENSIONS
from sdy.stablehlo.types.tensor_types import STATIC_DIMENSION_TENSOR, ranked, scalar, static


@define
class RngOp(InferredResults):
    """Random numbers from a distribution with parameters a and b, by the backend's stateful generator."""

    name = "stablehlo.rng"
    a = operand_def(scalar(REAL))
    b = operand_def(scalar(REAL))
    shape = operand_def(STATIC_DIMENSION_TENSOR)
    rng_distribution = prop_def(RngDistributionAttr)
    result = result_def(ranked(REAL))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), VerifiedByConstants())
    assembly_format = (
        "$a `,` $b `,` $shape `,` `distribution` `=` $rng_distribution attr-dict `:` functional-type(operands, results)"
    )

    def infer_types(self) -> Sequence[Attribute]:
        """Return the parameters' element type in the shape of the shape operand, dynamic unless it is constant."""
        elements = element_type(self.b)
        if self.rng_distribution.data is RngDistribution.NORMAL and not (
            isinstance(element_type(self.a), AnyFloat) and isinstance(elements, AnyFloat)
        ):
            raise VerifyException("mu and sigma must be floats")
        sizes = constant_integers(self.shape)
        if sizes is None:
            (rank,) = tensor_type(self.shape).get_shape()
            if rank > MAX_DIMENSIONS:
                raise VerifyException(f"too many dimensions in the shape operand: {rank}")
            sizes = [DYNAMIC_INDEX] * rank
        return [TensorType(elements, sizes)]

    def verify_(self) -> None:
        """Verify that parameters and result have the same element type, and the result's shape."""
        verify_matching_elements(self, "a", "b", "result")
        super().verify_()


@define
class RngBitGeneratorOp(IRDLOperation):
    """Random bits generated from a state, and the next state."""

    name = "stablehlo.rng_bit_generator"
    rng_algorithm = prop_def(RngAlgorithmAttr)
    initial_state = operand_def(ranked(REAL_NUMBERS))
    output_state = result_def(ranked(REAL_NUMBERS))
    output = result_def(static(REAL_NUMBERS))
    traits = traits_def(Pure(), DefinedResultNames())
    assembly_format = (
        "$initial_state `,` `algorithm` `=` $rng_algorithm attr-dict `:` functional-type(operands, results)"
    )

    def verify_(self) -> None:
        """Verify that both states have the same shape."""
        before, after = tensor_type(self.initial_state), tensor_type(self.output_state)
        if not compatible_shapes(before.get_shape(), after.get_shape()):
            message = "output state shape must be compatible with initial state shape"
            raise error(self, f"{message}. Got: '{before}' and '{after}'")
