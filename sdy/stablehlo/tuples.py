"""Tuples, used by older custom calls and loops."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, TupleType
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import NON_NEGATIVE_I32
from sdy.parse_errors import parse_error
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import SpacedOperands
from sdy.stablehlo.types.tensor_types import TENSOR_TOKEN_TUPLE_OR_BUFFER, TUPLE


@irdl_custom_directive
class TupleTypes(CustomDirective):
    """`tuple<tensor<4xf32>, tensor<i32>>`, the result type, which implies the operand types."""

    operands: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the result type, and set the types of operands and result."""
        start = parser.pos
        result = parser.parse_type()
        if not isinstance(result, TupleType):
            raise parse_error(parser, "expected tuple type", start)
        self.operands.set(state, result.types.data)
        self.result.set(state, (result,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the result type."""
        state.print_whitespace(printer)
        printer.print_attribute(op.results[0].type)


@define
class TupleOp(InferredResults):
    """Build a tuple of the operands."""

    name = "stablehlo.tuple"
    val = var_operand_def(TENSOR_TOKEN_TUPLE_OR_BUFFER)
    result = result_def(TUPLE)
    traits = traits_def(Pure())
    assembly_format = "custom<SpacedOperands>($val) attr-dict `:` custom<TupleTypes>(type($val), type($result))"
    custom_directives = (SpacedOperands, TupleTypes)

    def infer_types(self) -> Sequence[Attribute]:
        """Return a tuple of the operands' types."""
        return [TupleType(ArrayAttr(cast(Sequence[TypeAttribute], self.operand_types)))]


@define
class GetTupleElementOp(InferredResults):
    """Extract an element of a tuple."""

    name = "stablehlo.get_tuple_element"
    operand = operand_def(TUPLE)
    index = prop_def(NON_NEGATIVE_I32)
    result = result_def(TENSOR_TOKEN_TUPLE_OR_BUFFER)
    traits = traits_def(Pure())
    assembly_format = "$operand `[` $index `]` attr-dict `:` functional-type(operands, results)"

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type of the element."""
        assert isinstance(self.operand.type, TupleType)
        types: Sequence[Attribute] = self.operand.type.types.data
        index = self.index.value.data
        if index >= len(types):
            raise VerifyException(f"index {index} is out of bounds of operand with size {len(types)}")
        return [types[index]]

    def verify_(self) -> None:
        """Verify the index and the result type."""
        super().verify_()
