"""Operations that move elements without computing: broadcast, reshape, transpose, slice, pad, concatenate, ..."""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes import I64_ARRAY, i64_array
from sdy.stablehlo.definition import define
from sdy.stablehlo.shape_checks import tensor_type, verify_same_element_type, verify_shape
from sdy.stablehlo.syntax import Dims, OperandsBeforeAttribute, SameOperandsAndResultType


@define
class BroadcastInDimOp(IRDLOperation):
    """The operand repeated: its dimension i becomes the result's broadcast_dimensions[i], all others repeat it."""

    name = "stablehlo.broadcast_in_dim"
    operand = operand_def(TensorType)
    broadcast_dimensions = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `dims` `=` custom<Dims>($broadcast_dimensions) attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (Dims,)

    def __init__(self, operand: SSAValue, broadcast_dimensions: Sequence[int], result_type: TensorType[Attribute]):
        super().__init__(
            operands=[operand],
            properties={"broadcast_dimensions": i64_array(*broadcast_dimensions)},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        """Refuse dimensions that are not distinct dimensions of the result, of the operand's sizes or of size 1."""
        verify_same_element_type(self)
        operand, result = tensor_type(self.operand).get_shape(), tensor_type(self.result).get_shape()
        dims = self.broadcast_dimensions.get_values()
        if len(dims) != len(operand):
            raise VerifyException(
                f"broadcast_dimensions size ({len(dims)}) does not match operand rank ({len(operand)})"
            )
        if len(set(dims)) != len(dims):
            raise VerifyException("broadcast_dimensions should not have duplicates")
        for i, (dim, size) in enumerate(zip(dims, operand, strict=True)):
            if not 0 <= dim < len(result):
                raise VerifyException(
                    f"broadcast_dimensions contains invalid value {dim} for result with rank {len(result)}"
                )
            if size not in (1, result[dim], DYNAMIC_INDEX) and result[dim] != DYNAMIC_INDEX:
                raise VerifyException(
                    f"size of operand dimension {i} ({size}) is not equal to 1 or size of result dimension {dim} "
                    f"({result[dim]})"
                )


@define
class BroadcastOp(IRDLOperation):
    """The operand repeated along new leading dimensions."""

    name = "stablehlo.broadcast"
    operand = operand_def(TensorType)
    broadcast_sizes = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `sizes` `=` $broadcast_sizes attr-dict `:` functional-type(operands, results)"


class OneOperandOp(IRDLOperation):
    """An operation whose result type says all there is to say."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, result_type: TensorType[Attribute]):
        super().__init__(operands=[operand], result_types=[result_type])


@define
class ReshapeOp(OneOperandOp):
    """The same elements in row-major order under another shape."""

    name = "stablehlo.reshape"

    def verify_(self) -> None:
        """Refuse a result with another number of elements."""
        verify_same_element_type(self)
        operand, result = tensor_type(self.operand).get_shape(), tensor_type(self.result).get_shape()
        if DYNAMIC_INDEX in (*operand, *result):
            return
        if math.prod(operand) != math.prod(result):
            raise VerifyException(
                f"number of output elements ({math.prod(result)}) doesn't match expected number of elements "
                f"({math.prod(operand)})"
            )


@define
class BitcastConvertOp(OneOperandOp):
    """The same bits as another element type."""

    name = "stablehlo.bitcast_convert"


@define
class TransposeOp(IRDLOperation):
    """The result's dimension i is the operand's permutation[i]."""

    name = "stablehlo.transpose"
    operand = operand_def(TensorType)
    permutation = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `dims` `=` custom<Dims>($permutation) attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (Dims,)

    def __init__(self, operand: SSAValue, permutation: Sequence[int], result_type: TensorType[Attribute]):
        super().__init__(
            operands=[operand], properties={"permutation": i64_array(*permutation)}, result_types=[result_type]
        )

    def verify_(self) -> None:
        """Refuse what is no permutation, and a result of other sizes."""
        verify_same_element_type(self)
        shape, permutation = tensor_type(self.operand).get_shape(), self.permutation.get_values()
        if len(permutation) != len(shape):
            raise VerifyException(
                f"TransposeOp operand rank {len(shape)} does not match permutation size {len(permutation)}"
            )
        if sorted(permutation) != list(range(len(shape))):
            raise VerifyException(
                f"attribute permutation must be a permutation of [{', '.join(map(str, range(len(shape))))}] but got "
                f"{', '.join(map(str, permutation))}"
            )
        verify_shape(self.result, [shape[dim] for dim in permutation])


@define
class ReverseOp(IRDLOperation):
    """The elements in opposite order along the given dimensions."""

    name = "stablehlo.reverse"
    operand = operand_def(TensorType)
    dimensions = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` `dims` `=` $dimensions attr-dict"
        " `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )
    custom_directives = (SameOperandsAndResultType,)

    def verify_(self) -> None:
        """Refuse dimensions that are not distinct dimensions of the operand."""
        verify_same_element_type(self)
        dims, rank = self.dimensions.get_values(), tensor_type(self.operand).get_num_dims()
        if len(set(dims)) != len(dims):
            raise VerifyException(f"dimensions should be unique. Got: {', '.join(map(str, dims))}")
        for dim in dims:
            if dim < 0:
                raise VerifyException(f"all dimensions should be non-negative. Got dimension: {dim}.")
            if dim >= rank:
                raise VerifyException(f"all dimensions should be between [0, {rank}). Got dimension: {dim}.")


@irdl_custom_directive
class SliceRanges(CustomDirective):
    """`[0:4, 1:9:2]`, start, limit and stride (unless 1) of each dimension."""

    start_indices: AttributeVariable
    limit_indices: AttributeVariable
    strides: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the ranges and set the three properties."""

        def parse_range() -> tuple[int, int, int]:
            start = parser.parse_integer()
            parser.parse_punctuation(":")
            limit = parser.parse_integer()
            stride = 1 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()
            return start, limit, stride

        ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_range)
        for i, variable in enumerate((self.start_indices, self.limit_indices, self.strides)):
            variable.set(state, i64_array(*(range_[i] for range_ in ranges)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the ranges."""
        assert isinstance(op, SliceOp)
        state.print_whitespace(printer)
        texts = (f"{start}:{limit}" + (f":{stride}" if stride != 1 else "") for start, limit, stride in op.ranges())
        printer.print_string(f"[{', '.join(texts)}]")


@define
class SliceOp(IRDLOperation):
    """Every stride-th element from start (included) to limit (excluded), in each dimension."""

    name = "stablehlo.slice"
    operand = operand_def(TensorType)
    start_indices = prop_def(I64_ARRAY)
    limit_indices = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand custom<SliceRanges>($start_indices, $limit_indices, $strides)"
        " attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (SliceRanges,)

    def ranges(self) -> list[tuple[int, int, int]]:
        """Start, limit and stride of each dimension."""
        columns = (self.start_indices, self.limit_indices, self.strides)
        return list(zip(*(column.get_values() for column in columns), strict=True))

    def verify_(self) -> None:
        """Refuse ranges that leave the operand, and a result of other sizes."""
        verify_same_element_type(self)
        shape = tensor_type(self.operand).get_shape()
        if not len(self.start_indices) == len(self.limit_indices) == len(self.strides) == len(shape):
            raise VerifyException(
                f"the number of elements in start_indices ({len(self.start_indices)}) does not match the rank of the "
                f"operand ({len(shape)})"
            )
        for dim, ((start, limit, stride), size) in enumerate(zip(self.ranges(), shape, strict=True)):
            if start < 0:
                raise VerifyException(f"negative start index {start} in dimension {dim}")
            if size != DYNAMIC_INDEX and limit > size:
                raise VerifyException(f"limit index {limit} is larger than dimension size {size} in dimension {dim}")
            if start > limit:
                raise VerifyException(f"start index {start} is larger than limit index {limit} in dimension {dim}")
            if stride <= 0:
                raise VerifyException(f"stride must be positive but got {stride} in dimension {dim}")
        verify_shape(self.result, [-((start - limit) // stride) for start, limit, stride in self.ranges()])


@define
class DynamicSliceOp(IRDLOperation):
    """A slice of fixed sizes that starts at indices known only at run time, moved inside where it would leave."""

    name = "stablehlo.dynamic_slice"
    operand = operand_def(TensorType)
    start_indices = var_operand_def(TensorType)
    slice_sizes = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` custom<OperandsBeforeAttribute>($start_indices) `sizes` `=` $slice_sizes"
        " attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (OperandsBeforeAttribute,)

    def __init__(self, operand: SSAValue, start_indices: Sequence[SSAValue], slice_sizes: Sequence[int]):
        super().__init__(
            operands=[operand, start_indices],
            properties={"slice_sizes": i64_array(*slice_sizes)},
            result_types=[TensorType(tensor_type(operand).element_type, slice_sizes)],
        )

    def verify_(self) -> None:
        """Refuse sizes beyond the operand's, and a result of other sizes."""
        shape, sizes = tensor_type(self.operand).get_shape(), self.slice_sizes.get_values()
        if len(sizes) != len(shape) or len(self.start_indices) != len(shape):
            raise VerifyException(
                f"has mismatched number of slice sizes ({len(sizes)}) and number of start indices "
                f"({len(self.start_indices)})"
            )
        for dim, (slice_size, size) in enumerate(zip(sizes, shape, strict=True)):
            if slice_size < 0:
                raise VerifyException(f"has negative size index to dynamic slice: {slice_size}")
            if size != DYNAMIC_INDEX and slice_size > size:
                raise VerifyException(
                    f"has slice size {slice_size} greater than dimension size {size} in dimension {dim} of operand"
                )
        verify_shape(self.result, sizes)


@define
class DynamicUpdateSliceOp(IRDLOperation):
    """The operand with a slice, which starts at indices known only at run time, overwritten by the update."""

    name = "stablehlo.dynamic_update_slice"
    operand = operand_def(TensorType)
    update = operand_def(TensorType)
    start_indices = var_operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Refuse an update that is larger than the operand, and a result of other sizes."""
        shape, update = tensor_type(self.operand).get_shape(), tensor_type(self.update).get_shape()
        if len(update) != len(shape):
            raise VerifyException(f"update rank does not match operand rank: {len(update)} vs {len(shape)}.")
        if len(self.start_indices) != len(shape):
            raise VerifyException(
                f"expects number of start_indices to match operand rank: {len(self.start_indices)} vs {len(shape)}."
            )
        for dim, (update_size, size) in enumerate(zip(update, shape, strict=True)):
            if DYNAMIC_INDEX not in (update_size, size) and update_size > size:
                raise VerifyException(
                    f"expects size at dimension {dim} of update to be in range [0, {size}]. Got: {update_size}."
                )
        verify_shape(self.result, shape)


@define
class PadOp(IRDLOperation):
    """The operand with padding before, after and between its elements; negative padding removes elements."""

    name = "stablehlo.pad"
    operand = operand_def(TensorType)
    padding_value = operand_def(TensorType)
    edge_padding_low = prop_def(I64_ARRAY)
    edge_padding_high = prop_def(I64_ARRAY)
    interior_padding = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `,` $padding_value `,` `low` `=` $edge_padding_low `,` `high` `=` $edge_padding_high `,`"
        " `interior` `=` $interior_padding attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: SSAValue,
        padding_value: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ):
        type_ = tensor_type(operand)
        interior = interior or [0] * len(low)
        super().__init__(
            operands=[operand, padding_value],
            properties={
                "edge_padding_low": i64_array(*low),
                "edge_padding_high": i64_array(*high),
                "interior_padding": i64_array(*interior),
            },
            result_types=[TensorType(type_.element_type, padded_shape(type_.get_shape(), low, high, interior))],
        )

    def verify_(self) -> None:
        """Refuse paddings of another rank, negative interior padding, and a result of other sizes."""
        verify_same_element_type(self)
        shape = tensor_type(self.operand).get_shape()
        low, high, interior = (
            column.get_values() for column in (self.edge_padding_low, self.edge_padding_high, self.interior_padding)
        )
        if not len(low) == len(high) == len(interior) == len(shape):
            raise VerifyException(f"edge_padding_low length ({len(low)}) must match operand rank ({len(shape)})")
        if min(interior, default=0) < 0:
            raise VerifyException(f"Interior padding cannot be negative: {min(interior)}")
        verify_shape(self.result, padded_shape(shape, low, high, interior))


def padded_shape(shape: Sequence[int], low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> list[int]:
    """The shape of a tensor after padding; a dynamic size stays dynamic."""
    return [
        size if size == DYNAMIC_INDEX else before + size + max(size - 1, 0) * between + after
        for size, before, after, between in zip(shape, low, high, interior, strict=True)
    ]


@define
class ConcatenateOp(IRDLOperation):
    """The inputs one after the other along a dimension."""

    name = "stablehlo.concatenate"
    inputs = var_operand_def(TensorType)
    dimension = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<OperandsBeforeAttribute>($inputs) `dim` `=` $dimension attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (OperandsBeforeAttribute,)

    def verify_(self) -> None:
        """Refuse inputs that differ in another dimension, and a result of other sizes."""
        verify_same_element_type(self)
        dim = self.dimension.value.data
        first, *rest = (tensor_type(value).get_shape() for value in self.inputs)
        if not 0 <= dim < len(first):
            raise VerifyException(f"dimension {dim} is out-of-bounds for input rank {len(first)}")
        for i, shape in enumerate(rest, 1):
            if len(shape) != len(first):
                raise VerifyException(f"operands (0) and ({i}) do not match rank")
            for j, (size, expected) in enumerate(zip(shape, first, strict=True)):
                if j != dim and DYNAMIC_INDEX not in (size, expected) and size != expected:
                    raise VerifyException(
                        f"shapes of operand (0) and ({i}) are not compatible at non-concat index {j}: "
                        f"({', '.join(map(str, first))}) != ({', '.join(map(str, shape))})"
                    )
        sizes = [shape[dim] for shape in (first, *rest)]
        total = DYNAMIC_INDEX if DYNAMIC_INDEX in sizes else sum(sizes)
        verify_shape(self.result, [total if j == dim else size for j, size in enumerate(first)])
