"""Static and dynamic slices, and updates of slices."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
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

from sdy.ir.shapes import tensor_of
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY, I64Array, i64_array
from sdy.stablehlo.checks.agreement import verify_all_match, verify_matching_elements, verify_same_elements
from sdy.stablehlo.checks.inference import InferredResults, message_only, verify_inferred
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import OperandsBeforeAttribute
from sdy.stablehlo.types.element_types import INTEGERS
from sdy.stablehlo.types.sizes import Dim, dims_of, size_text, tensor_like
from sdy.stablehlo.types.tensor_types import DIMENSION_TENSOR, TENSOR, scalar


@irdl_custom_directive
class SliceRanges(CustomDirective):
    """`[0:4, 1:9:2]`, start, limit and stride (unless 1) of each dimension."""

    start_indices: AttributeVariable
    limit_indices: AttributeVariable
    strides: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the ranges and set the three properties."""

        def parse_range() -> tuple[int, int, int]:
            start = parser.parse_integer()
            parser.parse_punctuation(":")
            limit = parser.parse_integer()
            stride = 1 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()
            return start, limit, stride

        ranges: list[tuple[int, int, int]] = []
        parser.parse_punctuation("[")
        # Unlike xDSL's list parser, MLIR reports a missing comma, not a missing bracket.
        while parser.parse_optional_punctuation("]") is None:
            if ranges:
                parser.parse_punctuation(",")
            ranges.append(parse_range())
        for i, variable in enumerate((self.start_indices, self.limit_indices, self.strides)):
            variable.set(state, i64_array(*(range_[i] for range_ in ranges)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the ranges."""
        assert isinstance(op, SliceOp)
        state.print_whitespace(printer)
        texts = (f"{start}:{limit}" + (f":{stride}" if stride != 1 else "") for start, limit, stride in op.ranges())
        printer.print_string(f"[{', '.join(texts)}]")


@define
class SliceOp(InferredResults):
    """Slice with strides from start (inclusive) to limit (exclusive), in each dimension."""

    name = "stablehlo.slice"
    operand = operand_def(TENSOR)
    start_indices = prop_def(I64_ARRAY)
    limit_indices = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = (
        "$operand custom<SliceRanges>($start_indices, $limit_indices, $strides)"
        " attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (SliceRanges,)

    def ranges(self) -> list[tuple[int, int, int]]:
        """Return start, limit and stride of each dimension."""
        return list(zip(*(column.get_values() for column in self._columns()), strict=True))

    def _columns(self) -> tuple[I64Array, I64Array, I64Array]:
        return self.start_indices, self.limit_indices, self.strides

    def verify_(self) -> None:
        """Verify that the ranges are within the operand, and the result type."""
        if len(set(map(len, self._columns()))) > 1:
            raise VerifyException("failed to verify that all of {start_indices, limit_indices, strides} have same size")
        verify_same_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type of the slice, which is static."""
        type_, ranges = tensor_type(self.operand), self.ranges()
        if len(ranges) != type_.get_num_dims():
            raise VerifyException(
                f"the number of elements in start_indices ({len(ranges)}) does not match the rank of the operand "
                f"({type_.get_num_dims()})"
            )
        for number, (range_, dim) in enumerate(zip(ranges, dims_of(type_), strict=True)):
            _verify_range(range_, dim, f"in dimension {number}")
        return [tensor_like(type_, [Dim(-((start - limit) // stride)) for start, limit, stride in ranges])]


def _verify_range(range_: tuple[int, int, int], dim: Dim, location: str) -> None:
    start, limit, stride = range_
    most = dim.size if dim.is_static else dim.bound
    if start < 0:
        raise VerifyException(f"negative start index {start} {location}")
    if most is not None and limit > most:
        what = "size" if dim.is_static else "bound"
        raise VerifyException(f"limit index {limit} is larger than dimension {what} {most} {location}")
    if start > limit:
        raise VerifyException(f"start index {start} is larger than limit index {limit} {location}")
    if stride <= 0:
        raise VerifyException(f"stride must be positive but got {stride} {location}")


@define
class DynamicSliceOp(InferredResults):
    """Slice of static sizes from dynamic start indices, which are clamped to stay in bounds."""

    name = "stablehlo.dynamic_slice"
    operand = operand_def(TENSOR)
    start_indices = var_operand_def(scalar(INTEGERS))
    slice_sizes = prop_def(I64_ARRAY)
    result = result_def(TENSOR)
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
            result_types=[tensor_of(tensor_type(operand).element_type, slice_sizes)],
        )

    def verify_(self) -> None:
        """Verify that the sizes are within the operand, and the result type."""
        verify_matching_elements(self, "operand", "result")
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type of the slice."""
        type_, sizes = tensor_type(self.operand), self.slice_sizes.get_values()
        starts, rank = len(self.start_indices), type_.get_num_dims()
        if starts != len(sizes):
            raise VerifyException(
                f"has mismatched number of slice sizes ({len(sizes)}) and number of start indices ({starts})"
            )
        if starts != rank:
            raise VerifyException(f"has mismatched number of start indices ({starts}) and the rank of operand ({rank})")
        _verify_start_indices(self.start_indices)
        for dim, (slice_size, size) in enumerate(zip(sizes, type_.get_shape(), strict=True)):
            if slice_size < 0:
                raise VerifyException(f"has negative size index to dynamic slice: {slice_size}")
            if size != DYNAMIC_INDEX and slice_size > size:
                raise VerifyException(
                    f"has slice size {slice_size} greater than dimension size {size} in dimension {dim} of operand"
                )
        return [TensorType(type_.element_type, sizes)]


@define
class DynamicUpdateSliceOp(InferredResults):
    """Overwrite a slice of the operand, from dynamic start indices, with the update."""

    name = "stablehlo.dynamic_update_slice"
    operand = operand_def(TENSOR)
    update = operand_def(TENSOR)
    start_indices = var_operand_def(scalar(INTEGERS))
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify that the update is within the operand, and the result type."""
        verify_matching_elements(self, "operand", "update", "result")
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type."""
        shape, update = tensor_type(self.operand).get_shape(), tensor_type(self.update).get_shape()
        if len(update) != len(shape):
            raise VerifyException(f"update rank does not match operand rank: {len(update)} vs {len(shape)}.")
        if len(self.start_indices) != len(shape):
            raise VerifyException(
                f"expects number of start_indices to match operand rank: {len(self.start_indices)} vs {len(shape)}."
            )
        _verify_start_indices(self.start_indices)
        for dim, (update_size, size) in enumerate(zip(update, shape, strict=True)):
            if DYNAMIC_INDEX not in (update_size, size) and update_size > size:
                raise VerifyException(
                    f"expects size at dimension {dim} of update to be in range [0, {size}]. Got: {update_size}."
                )
        return [self.operand.type]


def _verify_start_indices(indices: Sequence[SSAValue]) -> None:
    if len({tensor_type(index).element_type for index in indices}) > 1:
        raise VerifyException("start indices must have same element type")


@define
class RealDynamicSliceOp(IRDLOperation):
    """Slice with dynamic starts, limits and strides."""

    name = "stablehlo.real_dynamic_slice"
    operand = operand_def(TENSOR)
    start_indices = operand_def(DIMENSION_TENSOR)
    limit_indices = operand_def(DIMENSION_TENSOR)
    strides = operand_def(DIMENSION_TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """Verify that there is one start, limit and stride per dimension."""
        verify_matching_elements(self, "operand", "result")
        verify_all_match(self, "type", lambda value: value.type, "start_indices", "limit_indices", "strides")
        rank = tensor_type(self.operand).get_num_dims()
        with message_only(self):
            for name in ("start_indices", "limit_indices", "strides"):
                (count,) = tensor_type(getattr(self, name)).get_shape()
                if count != rank:
                    raise VerifyException(
                        f"has mismatched number of operand rank ({rank}) and {name} size ({size_text(count)})"
                    )
