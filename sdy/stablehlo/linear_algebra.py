"""Batched linear algebra: Cholesky decomposition and triangular solve."""

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.enums import Transpose, TransposeAttr
from sdy.stablehlo.attributes.operation_attributes import FALSE
from sdy.stablehlo.checks.agreement import verify_compatible_elements
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.definition import define
from sdy.stablehlo.syntax.directives import SameOperandsAndResultType
from sdy.stablehlo.types.element_types import CONTINUOUS, INEXACT
from sdy.stablehlo.types.sizes import sizes_text
from sdy.stablehlo.types.tensor_types import ranked


@define
class CholeskyOp(InferredResults):
    """Batched Cholesky decomposition."""

    name = "stablehlo.cholesky"
    a = operand_def(ranked(CONTINUOUS))
    lower = opt_prop_def(BoolAttr, FALSE)
    result = result_def(ranked(CONTINUOUS))
    traits = traits_def(Pure())
    assembly_format = (
        "$a (`,` `lower` `=` $lower^)? attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Verify that the operand is a batch of square matrices and has the result's type."""
        verify_compatible_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type."""
        type_ = tensor_type(self.a)
        shape = type_.get_shape()
        if len(shape) < 2:
            raise VerifyException(f"argument 'a' must have rank >= 2, got shape {sizes_text(shape)}.")
        if not compatible_shapes(shape[-2:-1], shape[-1:]):
            raise VerifyException(f"minor dimensions of 'a' must have equal size, got shape {sizes_text(shape)}.")
        return (type_,)


@define
class TriangularSolveOp(InferredResults):
    """Batched solution x of a x = b, or of x a = b if not left_side, for a triangular matrix a."""

    name = "stablehlo.triangular_solve"
    a = operand_def(ranked(INEXACT))
    b = operand_def(ranked(INEXACT))
    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(ranked(INEXACT))
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Verify that the matrices are compatible and the result has the type of b."""
        verify_compatible_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type of b."""
        a_type, b_type = tensor_type(self.a), tensor_type(self.b)
        a, b = a_type.get_shape(), b_type.get_shape()
        if len(a) < 2:
            raise VerifyException(f"operand 'a' must have rank >= 2, but got '{a_type}'")
        if not compatible_shapes(a[-2:-1], a[-1:]):
            raise VerifyException(f"two minor dimensions of operand 'a' must be compatible, but got '{a_type}'")
        if len(a) != len(b):
            raise VerifyException(f"operands must have equal rank, but got '{a_type}' and '{b_type}'")
        shared = b[-2] if self.left_side else b[-1]
        for description, a_sizes, b_sizes in (
            ("shared dimension of operands 'a' and 'b'", a[-1:], (shared,)),
            ("batch dimensions of the operands", a[:-2], b[:-2]),
        ):
            if not compatible_shapes(a_sizes, b_sizes):
                raise VerifyException(f"{description} must be compatible, but got '{a_type}' and '{b_type}'")
        if self.transpose_a.data is Transpose.TRANSPOSE_INVALID:
            raise VerifyException("Invalid transpose option value for triangular solve")
        return (b_type,)
