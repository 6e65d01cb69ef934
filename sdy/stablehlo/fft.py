"""Fast Fourier transforms."""

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, ComplexType, TensorType, f32, f64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from sdy.stablehlo.attributes.enums import FftType, FftTypeAttr
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.definition import define
from sdy.stablehlo.types.element_types import INEXACT
from sdy.stablehlo.types.sizes import bounded_type, bounds_of, sizes_text
from sdy.stablehlo.types.tensor_types import ranked

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
