"""Whole algorithms as one operation: Cholesky, triangular solve, Fourier transform, batch normalisation."""

from xdsl.dialects.builtin import I64, BoolAttr, Float32Type, FloatAttr, IntegerAttr, TensorType
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from sdy.stablehlo.attributes import FALSE, I64_ARRAY
from sdy.stablehlo.definition import define
from sdy.stablehlo.enums import FftTypeAttr, TransposeAttr
from sdy.stablehlo.names import DefinedResultNames
from sdy.stablehlo.shape_checks import verify_same_type
from sdy.stablehlo.syntax import SameOperandsAndResultType


@define
class CholeskyOp(IRDLOperation):
    """The triangular matrix whose product with its adjoint is the operand, batched."""

    name = "stablehlo.cholesky"
    a = operand_def(TensorType)
    lower = opt_prop_def(BoolAttr, FALSE)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$a (`,` `lower` `=` $lower^)? attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Refuse a result of another type."""
        verify_same_type(self)


@define
class TriangularSolveOp(IRDLOperation):
    """The solution x of a x = b, or of x a = b where not left_side, for a triangular matrix a, batched."""

    name = "stablehlo.triangular_solve"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())


@define
class FftOp(IRDLOperation):
    """The Fourier transform along the last dimensions, as many as fft_length has."""

    name = "stablehlo.fft"
    operand = operand_def(TensorType)
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `type` `=` $fft_type `,` `length` `=` $fft_length attr-dict"
        " `:` functional-type(operands, results)"
    )


@define
class BatchNormTrainingOp(IRDLOperation):
    """The operand normalised over all dimensions but the feature's, and the mean and variance of each feature."""

    name = "stablehlo.batch_norm_training"
    operand = operand_def(TensorType)
    scale = operand_def(TensorType)
    offset = operand_def(TensorType)
    epsilon = prop_def(FloatAttr[Float32Type])
    feature_index = prop_def(IntegerAttr[I64])
    output = result_def(TensorType)
    batch_mean = result_def(TensorType)
    batch_var = result_def(TensorType)
    traits = traits_def(Pure(), DefinedResultNames())


@define
class BatchNormInferenceOp(IRDLOperation):
    """The operand normalised with the given mean and variance of each feature."""

    name = "stablehlo.batch_norm_inference"
    operand = operand_def(TensorType)
    scale = operand_def(TensorType)
    offset = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    epsilon = prop_def(FloatAttr[Float32Type])
    feature_index = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())


@define
class BatchNormGradOp(IRDLOperation):
    """The gradients of batch_norm_training."""

    name = "stablehlo.batch_norm_grad"
    operand = operand_def(TensorType)
    scale = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    grad_output = operand_def(TensorType)
    epsilon = prop_def(FloatAttr[Float32Type])
    feature_index = prop_def(IntegerAttr[I64])
    grad_operand = result_def(TensorType)
    grad_scale = result_def(TensorType)
    grad_offset = result_def(TensorType)
    traits = traits_def(Pure(), DefinedResultNames())
