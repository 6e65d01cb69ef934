"""CHLO, the operations of clients: its attributes, and the operations that are more than elementwise."""

from dataclasses import dataclass
from typing import Self

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, Pure, RecursiveMemoryEffect

from sdy.stablehlo.attributes import FALSE
from sdy.stablehlo.chlo_elementwise import BroadcastBinaryOp
from sdy.stablehlo.constants import TensorConstantOp
from sdy.stablehlo.definition import define
from sdy.stablehlo.enums import ComparisonDirection, ComparisonType, Precision
from sdy.stablehlo.names import DefinedResultNames, ScanNames
from sdy.stablehlo.struct_attribute import StructAttr


@irdl_attr_definition
class PrecisionAttr(EnumAttribute[Precision], SpacedOpaqueSyntaxAttribute):
    """`#chlo<precision DEFAULT>`."""

    name = "chlo.precision"


@irdl_attr_definition
class ComparisonDirectionAttr(EnumAttribute[ComparisonDirection], SpacedOpaqueSyntaxAttribute):
    """`#chlo<comparison_direction LT>`."""

    name = "chlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(EnumAttribute[ComparisonType], SpacedOpaqueSyntaxAttribute):
    """`#chlo<comparison_type FLOAT>`."""

    name = "chlo.comparison_type"


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimension numbers of a dot product, and which dimension has groups of differing sizes."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()
    lhs_ragged_dimensions: tuple[int, ...] = ()
    rhs_group_dimensions: tuple[int, ...] = ()


@irdl_attr_definition
class RaggedDotDimensionNumbersAttr(StructAttr[RaggedDotDimensionNumbers]):
    """`#chlo.ragged_dot<lhs_contracting_dimensions = [1], ...>`."""

    name = "chlo.ragged_dot"
    STRUCT = RaggedDotDimensionNumbers


@define
class BroadcastCompareOp(BroadcastBinaryOp):
    """Whether lhs and rhs stand in the given relation."""

    name = "chlo.broadcast_compare"
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)


@define
class ConstantOp(TensorConstantOp):
    """A tensor whose elements are known."""

    name = "chlo.constant"


@define
class ConstantLikeOp(IRDLOperation):
    """One value in the shape of the operand."""

    name = "chlo.constant_like"
    value = prop_def()
    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())


@define
class RaggedDotOp(IRDLOperation):
    """A dot product with one dimension in groups, whose sizes are an operand."""

    name = "chlo.ragged_dot"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    group_sizes = operand_def(TensorType)
    ragged_dot_dimension_numbers = prop_def(RaggedDotDimensionNumbersAttr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)
    traits = traits_def(Pure())


@define
class TopKOp(IRDLOperation):
    """The k largest elements along the last dimension, and their indices."""

    name = "chlo.top_k"
    operand = operand_def(TensorType)
    k = prop_def(IntegerAttr[I64])
    is_stable = opt_prop_def(BoolAttr, BoolAttr.from_bool(True))
    values = result_def(TensorType)
    indices = result_def(TensorType)
    traits = traits_def(Pure(), DefinedResultNames())
    assembly_format = (
        "`(` $operand `,` `k` `=` $k (`,` `is_stable` `=` $is_stable^)? `)` attr-dict"
        " `:` type($operand) `->` `(` type($values) `,` type($indices) `)`"
    )


@define
class ScanOp(IRDLOperation):
    """The body applied along a dimension, carrying values from one place to the next."""

    name = "chlo.scan"
    inputs = var_operand_def(TensorType)
    inits = var_operand_def(TensorType)
    dimension = prop_def(IntegerAttr[I64])
    scan_dim_size = opt_prop_def(IntegerAttr[I64])
    is_reverse = opt_prop_def(BoolAttr, FALSE)
    is_associative = opt_prop_def(BoolAttr)
    outputs = var_result_def(TensorType)
    carries = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), ScanNames())
    irdl_options = (AttrSizedOperandSegments(as_property=True), AttrSizedResultSegments(as_property=True))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read `(%x) inits (%0) dimension=0 {...} : type`."""
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
        written = {} if attributes is None else dict(attributes.data)
        own = cls.get_irdl_definition().properties.keys() & written.keys()
        segments = ([len(inputs), len(inits)], [outputs, len(inits)])
        operand_segments, result_segments = (DenseArrayBase.from_list(i32, sizes) for sizes in segments)
        return cls.create(
            operands=parser.resolve_operands([*inputs, *inits], types.inputs.data, start),
            result_types=types.outputs.data,
            properties={
                "dimension": dimension,
                "operandSegmentSizes": operand_segments,
                "resultSegmentSizes": result_segments,
                **{name: written.pop(name) for name in own},
            },
            attributes=written,
            regions=(body,),
        )

    def print(self, printer: Printer) -> None:
        """Write `(%x) inits (%0) dimension=0 {...} : type`."""
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
