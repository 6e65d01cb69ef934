"""Structured attributes of StableHLO operations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, BoolAttr, DenseArrayBase, TensorType, i1, i64
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import TensorEncoding
from sdy.stablehlo.attributes.dimension_numbers import DimensionNumbersAttr
from sdy.stablehlo.attributes.enums import ResultAccuracyMode, ResultAccuracyModeAttr
from sdy.stablehlo.attributes.sequence_attribute import SequenceAttr
from sdy.stablehlo.attributes.struct_attribute import StructAttr

I64Array = DenseArrayBase[I64]
"""The type of `array<i64: ...>`, which StableHLO uses for dimensions, sizes and strides."""

I64_ARRAY = DenseArrayBase.constr(i64)
BOOL_ARRAY = DenseArrayBase.constr(i1)
FALSE = BoolAttr.from_bool(False)


@lru_cache(maxsize=2**12)
def i64_array(*values: int) -> I64Array:
    """Return the interned attribute `array<i64: ...>` of these values."""
    return DenseArrayBase.from_list(i64, values)


@dataclass(frozen=True)
class DotDimensionNumbers:
    """The batching and the contracting dimensions of a dot product's operands, in pairs."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()


@irdl_attr_definition
class DotDimensionNumbersAttr(DimensionNumbersAttr[DotDimensionNumbers]):
    """The dimension numbers of a dot product, `#stablehlo.dot<lhs_contracting_dimensions = [1], ...>`."""

    name = "stablehlo.dot"
    STRUCT = DotDimensionNumbers
    DESCRIPTION = "dot dimension numbers"


@dataclass(frozen=True)
class GatherDimensionNumbers:
    """The dimension numbers of a gather; see `sdy.stablehlo.checks.slice_dimensions`."""

    offset_dims: tuple[int, ...] = ()
    collapsed_slice_dims: tuple[int, ...] = ()
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()
    start_index_map: tuple[int, ...] = ()
    index_vector_dim: int = 0


@irdl_attr_definition
class GatherDimensionNumbersAttr(DimensionNumbersAttr[GatherDimensionNumbers]):
    """The dimension numbers of a gather, `#stablehlo.gather<offset_dims = [2], ..., index_vector_dim = 2>`."""

    name = "stablehlo.gather"
    STRUCT = GatherDimensionNumbers
    DESCRIPTION = "gather dimension numbers"


@dataclass(frozen=True)
class ScatterDimensionNumbers:
    """The dimension numbers of a scatter; see `sdy.stablehlo.checks.slice_dimensions`."""

    update_window_dims: tuple[int, ...] = ()
    inserted_window_dims: tuple[int, ...] = ()
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    scatter_dims_to_operand_dims: tuple[int, ...] = ()
    index_vector_dim: int = 0


@irdl_attr_definition
class ScatterDimensionNumbersAttr(DimensionNumbersAttr[ScatterDimensionNumbers]):
    """The dimension numbers of a scatter, `#stablehlo.scatter<update_window_dims = [2], ..., index_vector_dim = 2>`."""

    name = "stablehlo.scatter"
    STRUCT = ScatterDimensionNumbers
    DESCRIPTION = "scatter dimension numbers"


@dataclass(frozen=True)
class ChannelHandle:
    """The id of a communication channel, and its type: 1 connects devices, 2 and 3 a device and the host."""

    handle: int
    type: int


@irdl_attr_definition
class ChannelHandleAttr(StructAttr[ChannelHandle]):
    """The channel of a collective, `#stablehlo.channel_handle<handle = 1, type = 0>`."""

    name = "stablehlo.channel_handle"
    STRUCT = ChannelHandle


@dataclass(frozen=True)
class OutputOperandAlias:
    """An alias of a custom call: an output, or an element of a tuple in it, shares its buffer with an operand."""

    output_tuple_indices: tuple[int, ...]
    operand_index: int
    operand_tuple_indices: tuple[int, ...]


@irdl_attr_definition
class OutputOperandAliasAttr(SequenceAttr[OutputOperandAlias]):
    """The alias of a result and an operand, `#stablehlo.output_operand_alias<output_tuple_indices = [], ...>`."""

    name = "stablehlo.output_operand_alias"
    STRUCT = OutputOperandAlias


@dataclass(frozen=True, kw_only=True)
class ResultAccuracy:
    """The tolerated error of a transcendental function: absolute, relative, in units in the last place."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    mode: ResultAccuracyModeAttr


@irdl_attr_definition
class ResultAccuracyAttr(StructAttr[ResultAccuracy]):
    """The required accuracy of a result, `#stablehlo.result_accuracy<ulps = 10, ..., mode = ...>`."""

    name = "stablehlo.result_accuracy"
    STRUCT = ResultAccuracy

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ResultAccuracy:
        """Parse `<atol = 1.0, ...>`. Raises ParseError for negative tolerances, or tolerances in another mode."""
        accuracy = super().parse_parameter(parser)
        tolerances, mode = (accuracy.atol, accuracy.rtol, accuracy.ulps), accuracy.mode.data
        if min(tolerances) < 0:
            parser.raise_error("Negative tolerance")
        if mode is not ResultAccuracyMode.TOLERANCE and any(tolerances):
            parser.raise_error(f"Invalid tolerances for ResultAccuracyAttr with mode {mode.value}, must be all zero.")
        return accuracy


DEFAULT_ACCURACY = ResultAccuracyAttr(ResultAccuracy(mode=ResultAccuracyModeAttr(ResultAccuracyMode.DEFAULT)))


Bounds = tuple[int | None, ...]
"""The upper bound of each dimension, None without a bound."""


def _bound(parser: AttrParser) -> int | None:
    return None if parser.parse_optional_punctuation("?") is not None else parser.parse_integer()


@irdl_attr_definition
class BoundsAttr(Data[Bounds], TensorEncoding):
    """`#stablehlo.bounds<?, 16>`, the encoding of a tensor whose dynamic dimensions have an upper bound."""

    name = "stablehlo.bounds"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Bounds:
        """Parse `<?, 16>`; `?` is a dimension without a bound."""
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _bound(parser)))

    def print_parameter(self, printer: Printer) -> None:
        """Print `<?, 16>`."""
        printer.print_string(f"<{', '.join('?' if bound is None else str(bound) for bound in self.data)}>")

    def verify_encoding(self, tensor: TensorType[Attribute]) -> None:
        """Raise VerifyException if the tensor has another rank, or a bounded dimension is static."""
        rank = tensor.get_num_dims()
        if len(self.data) != rank:
            raise VerifyException(
                f"Bounds length is {len(self.data)}, expected to be equal to rank({rank}) of the tensor '{tensor}'"
            )
        for dimension, (size, bound) in enumerate(zip(tensor.get_shape(), self.data, strict=True)):
            if bound is not None and size != DYNAMIC_INDEX:
                raise VerifyException(
                    f"Static dimension {dimension} cannot have a bound, use ShapedType::kDynamic to indicate a missing "
                    f"bound in tensor '{tensor}'"
                )


@irdl_attr_definition
class TypeExtensionsAttr(ParametrizedAttribute):
    """`#stablehlo.type_extensions<bounds = [?, 16]>`, the older syntax of `#stablehlo.bounds<?, 16>`."""

    name = "stablehlo.type_extensions"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse `<bounds = [?, 16]>`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("bounds")
            parser.parse_punctuation("=")
            return [
                BoundsAttr(tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _bound(parser))))
            ]

    @classmethod
    def new(cls, params: Sequence[Attribute]) -> Attribute:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the parsed `BoundsAttr`."""
        return params[0]
