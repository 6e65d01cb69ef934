"""CHLO, the client's operations: functions that StableHLO spells out in many steps, and implicit broadcasting."""

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
from xdsl.ir import Dialect, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    ParsePropInAttrDict,
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

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo.attributes import FALSE, I64_ARRAY
from sdy.stablehlo.constants import TensorConstantOp
from sdy.stablehlo.definition import define
from sdy.stablehlo.enums import ComparisonDirection, ComparisonType, Precision
from sdy.stablehlo.names import DefinedResultNames, ScanNames
from sdy.stablehlo.shape_checks import verify_same_shape
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


class UnaryElementwiseOp(IRDLOperation):
    """One operand, and a result of its shape."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def verify_(self) -> None:
        """Refuse a result of another shape."""
        verify_same_shape(self)


class BroadcastBinaryOp(IRDLOperation):
    """Two operands, broadcast to the result's shape as numpy does or as broadcast_dimensions says."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    broadcast_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)"


@define
class AcosOp(UnaryElementwiseOp):
    """The inverse cosine."""

    name = "chlo.acos"


@define
class AcoshOp(UnaryElementwiseOp):
    """The inverse hyperbolic cosine."""

    name = "chlo.acosh"


@define
class AsinOp(UnaryElementwiseOp):
    """The inverse sine."""

    name = "chlo.asin"


@define
class AsinAcosKernelOp(UnaryElementwiseOp):
    """The part that complex inverse sine and cosine have in common."""

    name = "chlo._asin_acos_kernel"


@define
class AsinhOp(UnaryElementwiseOp):
    """The inverse hyperbolic sine."""

    name = "chlo.asinh"


@define
class AtanOp(UnaryElementwiseOp):
    """The inverse tangent."""

    name = "chlo.atan"


@define
class AtanhOp(UnaryElementwiseOp):
    """The inverse hyperbolic tangent."""

    name = "chlo.atanh"


@define
class BesselI1eOp(UnaryElementwiseOp):
    """The exponentially scaled modified Bessel function of order 1."""

    name = "chlo.bessel_i1e"


@define
class ConjOp(UnaryElementwiseOp):
    """The complex conjugate."""

    name = "chlo.conj"


@define
class CoshOp(UnaryElementwiseOp):
    """The hyperbolic cosine."""

    name = "chlo.cosh"


@define
class DigammaOp(UnaryElementwiseOp):
    """The derivative of lgamma."""

    name = "chlo.digamma"


@define
class ErfOp(UnaryElementwiseOp):
    """The error function."""

    name = "chlo.erf"


@define
class ErfInvOp(UnaryElementwiseOp):
    """The inverse of the error function."""

    name = "chlo.erf_inv"


@define
class ErfcOp(UnaryElementwiseOp):
    """One minus the error function."""

    name = "chlo.erfc"


@define
class IsInfOp(UnaryElementwiseOp):
    """Whether each element is infinite."""

    name = "chlo.is_inf"


@define
class IsNegInfOp(UnaryElementwiseOp):
    """Whether each element is minus infinity."""

    name = "chlo.is_neg_inf"


@define
class IsPosInfOp(UnaryElementwiseOp):
    """Whether each element is plus infinity."""

    name = "chlo.is_pos_inf"


@define
class LgammaOp(UnaryElementwiseOp):
    """The logarithm of the absolute value of the gamma function."""

    name = "chlo.lgamma"


@define
class SinhOp(UnaryElementwiseOp):
    """The hyperbolic sine."""

    name = "chlo.sinh"


@define
class SquareOp(UnaryElementwiseOp):
    """The square."""

    name = "chlo.square"


@define
class TanOp(UnaryElementwiseOp):
    """The tangent."""

    name = "chlo.tan"


@define
class BroadcastAddOp(BroadcastBinaryOp):
    """lhs + rhs."""

    name = "chlo.broadcast_add"


@define
class BroadcastAndOp(BroadcastBinaryOp):
    """Logical or bitwise and."""

    name = "chlo.broadcast_and"


@define
class BroadcastAtan2Op(BroadcastBinaryOp):
    """The angle of the point (rhs, lhs)."""

    name = "chlo.broadcast_atan2"


@define
class BroadcastComplexOp(BroadcastBinaryOp):
    """Complex numbers of two parts."""

    name = "chlo.broadcast_complex"


@define
class BroadcastDivOp(BroadcastBinaryOp):
    """lhs / rhs."""

    name = "chlo.broadcast_divide"


@define
class BroadcastMaxOp(BroadcastBinaryOp):
    """The larger element."""

    name = "chlo.broadcast_maximum"


@define
class BroadcastMinOp(BroadcastBinaryOp):
    """The smaller element."""

    name = "chlo.broadcast_minimum"


@define
class BroadcastMulOp(BroadcastBinaryOp):
    """lhs * rhs."""

    name = "chlo.broadcast_multiply"


@define
class BroadcastNextAfterOp(BroadcastBinaryOp):
    """The next number after lhs towards rhs."""

    name = "chlo.broadcast_next_after"


@define
class BroadcastOrOp(BroadcastBinaryOp):
    """Logical or bitwise or."""

    name = "chlo.broadcast_or"


@define
class BroadcastPolygammaOp(BroadcastBinaryOp):
    """The lhs-th derivative of digamma."""

    name = "chlo.broadcast_polygamma"


@define
class BroadcastPowOp(BroadcastBinaryOp):
    """lhs to the power of rhs."""

    name = "chlo.broadcast_power"


@define
class BroadcastRemOp(BroadcastBinaryOp):
    """The remainder of the division."""

    name = "chlo.broadcast_remainder"


@define
class BroadcastShiftLeftOp(BroadcastBinaryOp):
    """lhs shifted left."""

    name = "chlo.broadcast_shift_left"


@define
class BroadcastShiftRightArithmeticOp(BroadcastBinaryOp):
    """lhs shifted right, the sign bit filling."""

    name = "chlo.broadcast_shift_right_arithmetic"


@define
class BroadcastShiftRightLogicalOp(BroadcastBinaryOp):
    """lhs shifted right, zeros filling."""

    name = "chlo.broadcast_shift_right_logical"


@define
class BroadcastSubOp(BroadcastBinaryOp):
    """lhs - rhs."""

    name = "chlo.broadcast_subtract"


@define
class BroadcastXorOp(BroadcastBinaryOp):
    """Logical or bitwise exclusive or."""

    name = "chlo.broadcast_xor"


@define
class BroadcastZetaOp(BroadcastBinaryOp):
    """The Hurwitz zeta function."""

    name = "chlo.broadcast_zeta"


@define
class BroadcastCompareOp(BroadcastBinaryOp):
    """Whether lhs and rhs stand in the given relation."""

    name = "chlo.broadcast_compare"
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)


@define
class BroadcastSelectOp(IRDLOperation):
    """Elements of on_true where pred holds and of on_false elsewhere."""

    name = "chlo.broadcast_select"
    pred = operand_def(TensorType)
    on_true = operand_def(TensorType)
    on_false = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$pred `,` $on_true `,` $on_false attr-dict"
        " `:` `(` type($pred) `,` type($on_true) `,` type($on_false) `)` `->` type($result)"
    )


@define
class NextAfterOp(IRDLOperation):
    """The next number after x towards y."""

    name = "chlo.next_after"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$x `,` $y attr-dict `:` type($x) `,` type($y) `->` type($result)"


@define
class PolygammaOp(IRDLOperation):
    """The n-th derivative of digamma at x."""

    name = "chlo.polygamma"
    n = operand_def(TensorType)
    x = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$n `,` $x attr-dict `:` type($n) `,` type($x) `->` type($result)"


@define
class ZetaOp(IRDLOperation):
    """The Hurwitz zeta function of x and q."""

    name = "chlo.zeta"
    x = operand_def(TensorType)
    q = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$x `,` $q attr-dict `:` type($x) `,` type($q) `->` type($result)"


@define
class MulhiOp(IRDLOperation):
    """The upper half of the product's bits."""

    name = "chlo.mulhi"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"


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


CHLO = Dialect(
    "chlo",
    [
        AcosOp,
        AcoshOp,
        AsinOp,
        AsinAcosKernelOp,
        AsinhOp,
        AtanOp,
        AtanhOp,
        BesselI1eOp,
        ConjOp,
        CoshOp,
        DigammaOp,
        ErfOp,
        ErfInvOp,
        ErfcOp,
        IsInfOp,
        IsNegInfOp,
        IsPosInfOp,
        LgammaOp,
        SinhOp,
        SquareOp,
        TanOp,
        BroadcastAddOp,
        BroadcastAndOp,
        BroadcastAtan2Op,
        BroadcastComplexOp,
        BroadcastDivOp,
        BroadcastMaxOp,
        BroadcastMinOp,
        BroadcastMulOp,
        BroadcastNextAfterOp,
        BroadcastOrOp,
        BroadcastPolygammaOp,
        BroadcastPowOp,
        BroadcastRemOp,
        BroadcastShiftLeftOp,
        BroadcastShiftRightArithmeticOp,
        BroadcastShiftRightLogicalOp,
        BroadcastSubOp,
        BroadcastXorOp,
        BroadcastZetaOp,
        BroadcastCompareOp,
        BroadcastSelectOp,
        NextAfterOp,
        PolygammaOp,
        ZetaOp,
        MulhiOp,
        ConstantOp,
        ConstantLikeOp,
        RaggedDotOp,
        TopKOp,
        ScanOp,
    ],
    [
        PrecisionAttr,
        ComparisonDirectionAttr,
        ComparisonTypeAttr,
        RaggedDotDimensionNumbersAttr,
    ],
)
