"""CHLO's scan."""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, DenseArrayBase, IntegerAttr, TensorType, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import NON_NEGATIVE_I64
from sdy.stablehlo.attributes.operation_attributes import FALSE
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred_shapes
from sdy.stablehlo.checks.shape_checks import as_ranked, compatible_types, tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.names import ScanNames
from sdy.stablehlo.types.sizes import dims_of, tensor_like
from sdy.stablehlo.types.tensor_types import ANY_TENSOR


@define
class ScanOp(InferredResults):
    """Apply the body to the slices along a dimension in order, with carried values."""

    name = "chlo.scan"
    inputs = var_operand_def(ANY_TENSOR)
    inits = var_operand_def(ANY_TENSOR)
    dimension = prop_def(NON_NEGATIVE_I64)
    scan_dim_size = opt_prop_def(NON_NEGATIVE_I64)
    is_reverse = opt_prop_def(BoolAttr, FALSE)
    is_associative = opt_prop_def(BoolAttr)
    outputs = var_result_def(ANY_TENSOR)
    carries = var_result_def(ANY_TENSOR)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), ScanNames())
    irdl_options = (AttrSizedOperandSegments(as_property=True), AttrSizedResultSegments(as_property=True))

    def verify_(self) -> None:
        """Verify the inputs' sizes along the dimension, the body's arguments and the result shapes."""
        if not self.inputs and not self.outputs:
            raise VerifyException("at least one of inputs or outputs must be present")
        self._verify_inputs()
        self._verify_arguments()
        verify_inferred_shapes(self)

    def _verify_inputs(self) -> None:
        dim, length = self.dimension.value.data, self._static_length()
        for number, value in enumerate(self.inputs):
            type_ = as_ranked(value.type)
            if type_ is None:
                raise VerifyException(f"operand {number} is not ranked")
            shape = type_.get_shape()
            if dim >= len(shape):
                raise VerifyException(f"scan dimension of operand {number} is out of bounds")
            if shape[dim] == DYNAMIC_INDEX:
                continue
            if length not in (None, shape[dim]):
                raise VerifyException(f"invalid scan dimension size of operand {number}")
            length = shape[dim]

    def _static_length(self) -> int | None:
        return None if self.scan_dim_size is None else self.scan_dim_size.value.data

    def _verify_arguments(self) -> None:
        arguments, dim = self.body.block.args, self.dimension.value.data
        if len(arguments) != len(self.operands):
            raise VerifyException(f"expects {len(self.operands)} arguments in the body, but got {len(arguments)}")
        for number, (operand, argument) in enumerate(zip(self.operands, arguments, strict=True)):
            type_ = as_ranked(operand.type)
            if type_ is None:
                raise VerifyException(f"operand {number} is not ranked")
            dims = dims_of(type_)
            if number < len(self.inputs):
                del dims[dim]
            if not compatible_types(tensor_like(type_, dims), argument.type):
                raise VerifyException(f"operand and body argument {number} are incompatible")

    def infer_types(self) -> Sequence[Attribute]:
        """Return the body's result types, with the scanned dimension inserted in the outputs."""
        last = self.body.block.last_op
        if last is None:
            raise VerifyException("ScanOp region is empty")
        returned = last.operands
        carries = len(self.inits)
        if len(returned) < carries:
            raise VerifyException(f"ScanOp body must return at least {carries} values (carries)")
        dim, length = self.dimension.value.data, self._static_length()
        for value in self.inputs:
            if length in (None, DYNAMIC_INDEX):
                length = tensor_type(value).get_shape()[dim]
        types: list[Attribute] = []
        for number, value in enumerate(returned):
            type_ = as_ranked(value.type)
            if type_ is None:
                raise VerifyException(f"terminator operand {number} is not ranked")
            shape = list(type_.get_shape())
            if number < len(returned) - carries:
                shape.insert(dim, DYNAMIC_INDEX if length is None else length)
            types.append(TensorType(type_.element_type, shape))
        return types

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `(%x) inits (%0) dimension=0 {...} : type`."""
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("inits")
        inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dimension")
        parser.parse_punctuation("=")
        dimension = IntegerAttr(parser.parse_integer(), i64)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        parser.parse_punctuation(":")
        start = parser.pos
        types = parser.parse_function_type()
        outputs = len(types.outputs) - len(inits)
        if outputs < 0:
            parser.raise_error("not enough result types to cover the required carries", start, parser.pos)
        entries = {} if attributes is None else dict(attributes.data)
        inherent = cls.get_irdl_definition().properties.keys() & entries.keys()
        segments = ([len(inputs), len(inits)], [outputs, len(inits)])
        operand_segments, result_segments = (DenseArrayBase.from_list(i32, sizes) for sizes in segments)
        return cls.create(
            operands=parser.resolve_operands([*inputs, *inits], types.inputs.data, start),
            result_types=types.outputs.data,
            properties={
                "dimension": dimension,
                "operandSegmentSizes": operand_segments,
                "resultSegmentSizes": result_segments,
                **{name: entries.pop(name) for name in inherent},
            },
            attributes=entries,
            regions=(body,),
        )

    def print(self, printer: Printer) -> None:
        """Print `(%x) inits (%0) dimension=0 {...} : type`."""
        printer.print_operands(self.inputs)
        printer.print_string(" inits ")
        printer.print_operands(self.inits)
        printer.print_string(f" dimension={self.dimension.value.data} ")
        elsewhere = ("dimension", "operandSegmentSizes", "resultSegmentSizes")
        printer.print_op_attributes(
            self.attributes | self.properties, reserved_attr_names=elsewhere, print_keyword=True
        )
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
