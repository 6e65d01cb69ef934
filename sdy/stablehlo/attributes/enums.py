"""The enumerations of StableHLO: precisions, comparisons, transforms, random number generation.

Each is printed `#stablehlo<mnemonic CASE>` as an attribute, and `CASE` in an operation's assembly format.
"""

from typing import Any

from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from sdy.parse_errors import explained, parse_error


class Precision(StrEnum):
    """The precision of an operand's elements in a product."""

    DEFAULT = "DEFAULT"
    HIGH = "HIGH"
    HIGHEST = "HIGHEST"


class ResultAccuracyMode(StrEnum):
    """The accuracy mode of a transcendental function: the backend's default, its highest, or within a tolerance."""

    DEFAULT = "DEFAULT"
    HIGHEST = "HIGHEST"
    TOLERANCE = "TOLERANCE"


class FftType(StrEnum):
    """Complex or real Fourier transform, forward or inverse."""

    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


class ComparisonDirection(StrEnum):
    """The relation that `compare` tests."""

    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


class ComparisonType(StrEnum):
    """The interpretation of elements by `compare`; TOTALORDER orders -0 before +0 and includes NaNs."""

    NOTYPE = "NOTYPE"
    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


class Transpose(StrEnum):
    """The transformation that `triangular_solve` applies to its matrix."""

    TRANSPOSE_INVALID = "TRANSPOSE_INVALID"
    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


class RngDistribution(StrEnum):
    """The distribution that `rng` draws from."""

    UNIFORM = "UNIFORM"
    NORMAL = "NORMAL"


class RngAlgorithm(StrEnum):
    """The generator behind `rng_bit_generator`."""

    DEFAULT = "DEFAULT"
    THREE_FRY = "THREE_FRY"
    PHILOX = "PHILOX"


class NamedCase:
    """Mixin of enumeration attributes that reports unknown cases as MLIR does."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        """Parse a case, such as `DEFAULT`."""
        assert issubclass(cls, EnumAttribute)
        enum = cls.enum_type
        names = [case.value for case in enum]
        cpp_type = f"::mlir::stablehlo::{enum.__name__}"
        failure = f"failed to parse StableHLO_{cls.__name__} parameter 'value' which is to be a `{cpp_type}`"

        def parse(parser: AttrParser) -> StrEnum:
            start = parser.pos
            word = parser.parse_optional_identifier_or_str_literal()
            if word is None:
                raise parse_error(parser, "expected valid keyword or string")
            if word not in names:
                raise parse_error(parser, f"expected {cpp_type} to be one of: {', '.join(names)}", start)
            return enum(word)

        return explained(parser, parse, failure)


@irdl_attr_definition
class PrecisionAttr(NamedCase, EnumAttribute[Precision], SpacedOpaqueSyntaxAttribute):
    """The precision of an operand of a product, `#stablehlo<precision DEFAULT>`."""

    name = "stablehlo.precision"


@irdl_attr_definition
class ResultAccuracyModeAttr(EnumAttribute[ResultAccuracyMode]):
    """The mode of a result accuracy, `#stablehlo.result_accuracy_mode<DEFAULT>`."""

    name = "stablehlo.result_accuracy_mode"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ResultAccuracyMode:
        """Parse `<DEFAULT>`."""
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print `<DEFAULT>`."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)


@irdl_attr_definition
class FftTypeAttr(NamedCase, EnumAttribute[FftType], SpacedOpaqueSyntaxAttribute):
    """The kind of a Fourier transform, `#stablehlo<fft_type FFT>`."""

    name = "stablehlo.fft_type"


@irdl_attr_definition
class ComparisonDirectionAttr(NamedCase, EnumAttribute[ComparisonDirection], SpacedOpaqueSyntaxAttribute):
    """The relation that a comparison tests, `#stablehlo<comparison_direction LT>`."""

    name = "stablehlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(NamedCase, EnumAttribute[ComparisonType], SpacedOpaqueSyntaxAttribute):
    """The interpretation of compared elements, `#stablehlo<comparison_type SIGNED>`."""

    name = "stablehlo.comparison_type"


@irdl_attr_definition
class TransposeAttr(NamedCase, EnumAttribute[Transpose], SpacedOpaqueSyntaxAttribute):
    """The transposition of a triangular solve's matrix, `#stablehlo<transpose NO_TRANSPOSE>`."""

    name = "stablehlo.transpose"


@irdl_attr_definition
class RngDistributionAttr(NamedCase, EnumAttribute[RngDistribution], SpacedOpaqueSyntaxAttribute):
    """The distribution of random numbers, `#stablehlo<rng_distribution UNIFORM>`."""

    name = "stablehlo.rng_distribution"


@irdl_attr_definition
class RngAlgorithmAttr(NamedCase, EnumAttribute[RngAlgorithm], SpacedOpaqueSyntaxAttribute):
    """The algorithm of a random bit generator, `#stablehlo<rng_algorithm THREE_FRY>`."""

    name = "stablehlo.rng_algorithm"
