"""Batched linear algebra: Cholesky decomposition, triangular solve and fast Fourier transforms."""

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, BoolAttr, ComplexType, TensorType, f32, f64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from sdy.stablehlo.attributes.enums import FftType, FftTypeAttr, Transpose, TransposeAttr
from sdy.stablehlo.attributes.operation_attributes import FALSE, I64_ARRAY
from sdy.stablehlo.checks.agreement import verify_compatible_elements
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import SameOperandsAndResultType
from sdy.stablehlo.types.element_types import CONTINUOUS, INEXACT
from sdy.stablehlo.types.sizes import bounded_type, bounds_of, sizes_text
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


MAX_RANK = 3


@define
class FftOp(InferredResults):
    """The Fourier transform along the last len(fft_length) dimensions.

    FFT and IFFT map complex to complex numbers; RFFT maps n real numbers to n/2 + 1 complex ones, omitting redundant
    conjugates; IRFFT is its inverse.
    """

    name = "stablehlo.fft"
    operand = operand_def(ranked(INEXACT))
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(I64_ARRAY)
    result = result_def(ranked(INEXACT))
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `type` `=` $fft_type `,` `length` `=` $fft_length attr-dict"
        " `:` functional-type(operands, results)"
    )

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type with the last size and the element type changed for RFFT and IRFFT."""
        kind, lengths = self.fft_type.data, self.fft_length.get_values()
        operand = tensor_type(self.operand)
        if not 1 <= len(lengths) <= MAX_RANK:
            raise VerifyException(f"rank must be between 1 and {MAX_RANK}, but got {len(lengths)}.")
        element_type = _element_type(kind, operand)
        shape, bounds = operand.get_shape(), bounds_of(operand)
        if len(shape) < len(lengths):
            raise VerifyException(
                f"operand rank must not be less than fft rank of {len(lengths)} for operand of type '{operand}'."
            )
        last = shape[-1]
        if kind is FftType.RFFT:
            _check_real_sizes(shape, lengths)
            last = _spectrum_size(lengths[-1]) if lengths[-1] else last
        elif kind is FftType.IRFFT:
            _check_spectrum_sizes(shape, lengths)
            last = lengths[-1]
        if kind in (FftType.RFFT, FftType.IRFFT):
            bounds = (*bounds[:-1], None)
        return (bounded_type(element_type, (*shape[:-1], last), bounds),)


def _spectrum_size(length: int) -> int:
    """Return the number of results of an RFFT of `length`; a negative length is rounded towards zero, as in C++."""
    return int(length / 2) + 1


def _element_type(kind: FftType, operand: TensorType[Attribute]) -> Attribute:
    element_type = operand.element_type
    if kind is FftType.RFFT:
        if element_type not in (f32, f64):
            raise VerifyException(f"RFFT requires f32 or f64 input type, but is given '{element_type}'.")
        assert isinstance(element_type, AnyFloat)
        return ComplexType(element_type)
    if not isa(element_type, ComplexType):
        raise VerifyException(f"FFT/IFFT/IRFFT take a complex tensor as input, but is given '{operand}'.")
    return element_type.element_type if kind is FftType.IRFFT else element_type


def _check_real_sizes(shape: Sequence[int], lengths: Sequence[int]) -> None:
    if not compatible_shapes(shape[-len(lengths) :], lengths):
        raise VerifyException(
            "RFFT requires innermost dimensions to be compatible with fft_length. "
            f"Got: {sizes_text(shape)} but wanted {sizes_text(lengths)}."
        )


def _check_spectrum_sizes(shape: Sequence[int], lengths: Sequence[int]) -> None:
    for size, length in zip(shape[-len(lengths) : -1], lengths, strict=False):
        if not compatible_shapes((size,), (length,)):
            raise VerifyException(
                "IRFFT requires non-final dimensions to be compatible with fft_length. "
                f"Got: {sizes_text(shape)} but wanted {sizes_text(lengths)}, and {size} != {length}."
            )
    last, length = shape[-1], lengths[-1]
    is_empty = length == 0 and compatible_shapes((last,), (0,))
    if not is_empty and not compatible_shapes((last,), (_spectrum_size(length),)):
        raise VerifyException(
            "IRFFT requires innermost dimension to be compatible with fft_length[-1]/2+1. "
            f"Got: {last} but fft_length is {sizes_text(lengths)}."
        )
