"""Products of tensors: dot, dot_general, einsum."""

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr, TensorType
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
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

from sdy.stablehlo.attributes import DotAlgorithmAttr, DotDimensionNumbers, DotDimensionNumbersAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.enums import Precision, PrecisionAttr
from sdy.stablehlo.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.struct_attribute import dims_text, parse_dims

PrecisionConfig = ArrayAttr[PrecisionAttr]


def precision_text(config: PrecisionConfig) -> str:
    """`, precision = [DEFAULT, HIGH]`."""
    return f", precision = [{', '.join(precision.data.value for precision in config)}]"


def parse_precision(parser: Parser) -> PrecisionConfig:
    """Read `precision = [DEFAULT, HIGH]`."""
    parser.parse_keyword("precision")
    parser.parse_punctuation("=")
    return ArrayAttr(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: PrecisionAttr(parser.parse_str_enum(Precision))
        )
    )


@irdl_custom_directive
class DotDimensions(CustomDirective):
    """`batching_dims = [0] x [0], contracting_dims = [2] x [1]`; no batching dimensions are not written."""

    dimension_numbers: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read both pairs of lists."""
        lhs_batching, rhs_batching = (), ()
        if parser.parse_optional_keyword("batching_dims") is not None:
            lhs_batching, rhs_batching = self._parse_pair(parser)
            parser.parse_punctuation(",")
        parser.parse_keyword("contracting_dims")
        lhs_contracting, rhs_contracting = self._parse_pair(parser)
        numbers = DotDimensionNumbers(lhs_batching, rhs_batching, lhs_contracting, rhs_contracting)
        self.dimension_numbers.set(state, DotDimensionNumbersAttr(numbers))

    @staticmethod
    def _parse_pair(parser: Parser) -> tuple[tuple[int, ...], tuple[int, ...]]:
        parser.parse_punctuation("=")
        lhs = parse_dims(parser)
        parser.parse_keyword("x")
        return lhs, parse_dims(parser)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write both pairs of lists."""
        assert isinstance(op, DotGeneralOp)
        state.print_whitespace(printer)
        numbers = op.dot_dimension_numbers.data
        if numbers.lhs_batching_dimensions or numbers.rhs_batching_dimensions:
            lhs, rhs = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
            printer.print_string(f"batching_dims = {dims_text(lhs)} x {dims_text(rhs)}, ")
        lhs, rhs = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
        printer.print_string(f"contracting_dims = {dims_text(lhs)} x {dims_text(rhs)}")


@irdl_custom_directive
class OptionalPrecision(CustomDirective):
    """`, precision = [DEFAULT, HIGH]`, or nothing."""

    precision_config: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the precisions if there is a comma."""
        if parser.parse_optional_punctuation(",") is not None:
            self.precision_config.set(state, parse_precision(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the precisions if the operation has any."""
        assert isinstance(op, DotOp)
        if op.precision_config is not None:
            printer.print_string(precision_text(op.precision_config))


@irdl_custom_directive
class OptionalPrecisionAndAlgorithm(CustomDirective):
    """`, precision = [...], algorithm = <...>`, either part, or nothing."""

    precision_config: AttributeVariable
    algorithm: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read what there is; each part begins with a comma, and precisions come first."""
        while parser.parse_optional_punctuation(",") is not None:
            if parser.parse_optional_keyword("algorithm") is not None:
                parser.parse_punctuation("=")
                self.algorithm.set(state, DotAlgorithmAttr(DotAlgorithmAttr.parse_parameter(parser)))
                return
            self.precision_config.set(state, parse_precision(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the parts that the operation has."""
        assert isinstance(op, DotGeneralOp)
        if op.precision_config is not None:
            printer.print_string(precision_text(op.precision_config))
        if op.algorithm is not None:
            printer.print_string(", algorithm = ")
            op.algorithm.print_parameter(printer)


@define
class DotGeneralOp(IRDLOperation):
    """Products of lhs and rhs summed over the contracting dimensions.

    The result's dimensions are the batching ones, then lhs's own, then rhs's own.
    """

    name = "stablehlo.dot_general"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    dot_dimension_numbers = prop_def(DotDimensionNumbersAttr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    algorithm = opt_prop_def(DotAlgorithmAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs `,` custom<DotDimensions>($dot_dimension_numbers)"
        " custom<OptionalPrecisionAndAlgorithm>($precision_config, $algorithm)"
        " attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (DotDimensions, OptionalPrecisionAndAlgorithm)

    def verify_(self) -> None:
        """Refuse dimension numbers that are out of range, repeated or of sizes that differ, and a wrong result."""
        numbers = self.dot_dimension_numbers.data
        lhs, rhs = tensor_type(self.lhs).get_shape(), tensor_type(self.rhs).get_shape()
        verify_dot_dimensions(numbers, lhs, rhs)
        batching = [lhs[dim] for dim in numbers.lhs_batching_dimensions]
        lhs_used = {*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions}
        rhs_used = {*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions}
        lhs_own = [size for dim, size in enumerate(lhs) if dim not in lhs_used]
        rhs_own = [size for dim, size in enumerate(rhs) if dim not in rhs_used]
        inferred, result = [*batching, *lhs_own, *rhs_own], tensor_type(self.result)
        if not compatible_shapes(inferred, result.get_shape()):
            raise VerifyException(
                f"inferred shape '{inferred}' is incompatible with return type of operation '{result}'"
            )


def verify_dot_dimensions(numbers: DotDimensionNumbers, lhs: Sequence[int], rhs: Sequence[int]) -> None:
    """Refuse dimension numbers that do not fit operands of these shapes."""
    pairs = {
        "batching": (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions),
        "contracting": (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
    }
    for kind, (lhs_dims, rhs_dims) in pairs.items():
        if len(lhs_dims) != len(rhs_dims):
            raise VerifyException(f"lhs and rhs should have the same number of {kind} dimensions")
    for side, shape, dims in (
        ("lhs", lhs, numbers.lhs_batching_dimensions + numbers.lhs_contracting_dimensions),
        ("rhs", rhs, numbers.rhs_batching_dimensions + numbers.rhs_contracting_dimensions),
    ):
        repeated = next((dim for i, dim in enumerate(dims) if dim in dims[:i]), None)
        if repeated is not None:
            raise VerifyException(
                f"has duplicated dimension from {side}_batching_dimensions and {side}_contracting_dimensions: "
                f"{repeated}"
            )
        for kind, (lhs_dims, rhs_dims) in pairs.items():
            for dim in lhs_dims if side == "lhs" else rhs_dims:
                if not 0 <= dim < len(shape):
                    raise VerifyException(f"{side}_{kind}_dimensions value: {dim} is out of range: [0, {len(shape)})")
    for kind, (lhs_dims, rhs_dims) in pairs.items():
        for lhs_dim, rhs_dim in zip(lhs_dims, rhs_dims, strict=True):
            if lhs[lhs_dim] != rhs[rhs_dim] and DYNAMIC_INDEX not in (lhs[lhs_dim], rhs[rhs_dim]):
                raise VerifyException(f"{kind} dimension sizes must match for lhs/rhs")


@define
class DotOp(IRDLOperation):
    """The product of vectors or matrices."""

    name = "stablehlo.dot"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs custom<OptionalPrecision>($precision_config) attr-dict `:` functional-type(operands, results)"
    )
    custom_directives = (OptionalPrecision,)


@define
class EinsumOp(IRDLOperation):
    """A sum of products of two operands in Einstein's notation, `"ab,bc->ac"`."""

    name = "stablehlo.einsum"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    einsum_config = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"


@define
class UnaryEinsumOp(IRDLOperation):
    """A transposition, diagonal or sum of one operand in Einstein's notation."""

    name = "stablehlo.unary_einsum"
    operand = operand_def(TensorType)
    einsum_config = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"
