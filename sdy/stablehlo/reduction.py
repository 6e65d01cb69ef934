"""Reductions along dimensions, by a commutative operation or a region.

%1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [1]
  : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
"""

from typing import Self

from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import SameVariadicOperandSize, prop_def, region_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.ir.operation_key import VerifiedByBody
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY, i64_array
from sdy.stablehlo.attributes.struct_attribute import dims_text, parse_dims
from sdy.stablehlo.checks.inference import InferredResults, message_only
from sdy.stablehlo.checks.reducers import (
    inputs_and_init_values,
    reducer_element_types,
    scalar,
    verify_compatible_inputs,
    verify_reducer,
)
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.elementwise import AddOp, AndOp, CommutativeElementwiseOp, MaxOp, MinOp, MulOp, OrOp, XorOp
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.sizes import bounded_type, bounds_of
from sdy.stablehlo.types.tensor_types import TENSOR
from sdy.text.reading.tokens import TokenParser

REDUCERS: dict[str, type[CommutativeElementwiseOp]] = {
    reducer.name: reducer for reducer in (AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp, XorOp)
}
"""The operations that `applies` may name."""


@define
class ReduceOp(InferredResults):
    """Reduce the inputs along dimensions by the body, from the init values."""

    name = "stablehlo.reduce"
    inputs = var_operand_def(TENSOR)
    init_values = var_operand_def(TENSOR)
    dimensions = prop_def(I64_ARRAY)
    res = var_result_def(TENSOR)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect(), VerifiedByBody())
    irdl_options = (SameVariadicOperandSize(),)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `(%x init: %0) applies stablehlo.add across dimensions = [1] : type`, or a body after `reducer`.

        As in MLIR, the location of the operation, and of an implied body, is that of its first operand.
        """
        place = parser.lines.attribute(parser.pos) if isinstance(parser, TokenParser) else UnknownLoc()

        def parse_pair() -> tuple[UnresolvedOperand, UnresolvedOperand]:
            parser.parse_punctuation("(")
            input_ = parser.parse_unresolved_operand()
            parser.parse_keyword("init")
            parser.parse_punctuation(":")
            init_value = parser.parse_unresolved_operand()
            parser.parse_punctuation(")")
            return input_, init_value

        pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_pair)
        start = parser.pos
        applied = parser.parse_identifier() if parser.parse_optional_keyword("applies") is not None else None
        applied_end = parser.pos
        parser.parse_keyword("across")
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        dimensions = parse_dims(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types_start = parser.pos
        types = parser.parse_function_type()
        unresolved = [input_ for input_, _ in pairs] + [init_value for _, init_value in pairs]
        operands = parser.resolve_operands(unresolved, types.inputs.data, types_start)
        if applied is None:
            body = cls._parse_reducer(parser)
        else:
            reducer = REDUCERS.get(applied)
            if reducer is None:
                parser.raise_error(
                    "expected the inner-op to be a commutative binary-op from the stablehlo dialect, with zero "
                    "region, producing single result",
                    start,
                    applied_end,
                )
            body = reducer_body(reducer, operands[0])
        place = parser.parse_optional_location() or place
        if applied is not None:
            for value in body.block.args:
                value.location = place
            for op in body.block.ops:
                op.location = place
        return cls.create(
            operands=operands,
            result_types=types.outputs.data,
            properties={"dimensions": i64_array(*dimensions)},
            attributes=attributes,
            regions=(body,),
            location=place,
        )

    @staticmethod
    def _parse_reducer(parser: Parser) -> Region:
        parser.parse_keyword("reducer")
        arguments: list[Parser.Argument] = []
        init_arguments: list[Parser.Argument] = []
        while parser.parse_optional_punctuation("(") is not None:
            arguments.append(parser.parse_argument())
            parser.parse_punctuation(",")
            init_arguments.append(parser.parse_argument())
            parser.parse_punctuation(")")
        return parser.parse_region((*arguments, *init_arguments))

    def print(self, printer: Printer) -> None:
        """Print the short form if the body is one commutative operation on its arguments."""

        def print_pair(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_string("(")
            printer.print_operand(pair[0])
            printer.print_string(" init: ")
            printer.print_operand(pair[1])
            printer.print_string(")")

        printer.print_list(zip(self.inputs, self.init_values, strict=True), print_pair)
        applied = self.applied()
        if applied is not None:
            printer.print_string(f" applies {applied.name}")
        printer.print_string(f" across dimensions = {dims_text(self.dimensions.get_values())}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
        if applied is None:
            self._print_reducer(printer)

    def _print_reducer(self, printer: Printer) -> None:
        arguments = self.body.block.args
        count = len(self.inputs)
        printer.print_string("\n reducer")
        for argument, init_argument in zip(arguments[:count], arguments[count:], strict=True):
            printer.print_string("(")
            printer.print_block_argument(argument)
            printer.print_string(", ")
            printer.print_block_argument(init_argument)
            printer.print_string(") ")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def applied(self) -> CommutativeElementwiseOp | None:
        """Return the body's operation if it is a single commutative one on its arguments, otherwise None."""
        block = self.body.block
        first, last = block.first_op, block.last_op
        if (
            isinstance(first, CommutativeElementwiseOp)
            and isinstance(last, ReturnOp)
            and first.next_op is last
            and tuple(first.operands) == tuple(block.args)
            and tuple(last.operands) == tuple(first.results)
            and first.lhs.type == first.rhs.type == first.result.type
            and first.lhs.type == scalar(tensor_type(self.inputs[0]).element_type)
        ):
            return first
        return None

    def infer_types(self) -> list[Attribute]:
        """Return types of the remaining dimensions with the body's element types."""
        (first, *_), _ = inputs_and_init_values(self.operands)
        kept = self._kept_dimensions()
        bounds = bounds_of(first)
        return [
            bounded_type(
                element_type, [first.get_shape()[dim] for dim in kept], [bounds[dim] for dim in kept] if bounds else ()
            )
            for element_type in reducer_element_types(self.body)
        ]

    def verify_(self) -> None:
        """Verify the dimensions, the body and the result types."""
        with message_only(self):
            inputs, init_values = inputs_and_init_values(self.operands)
            verify_compatible_inputs(inputs)
            sizes = [inputs[0].get_shape()[dim] for dim in self._kept_dimensions()]
            verify_reducer(self.body, inputs, init_values, sizes)
        super().verify_()

    def _kept_dimensions(self) -> list[int]:
        rank = tensor_type(self.operands[0]).get_num_dims()
        reduced: set[int] = set()
        for dim in self.dimensions.get_values():
            if not 0 <= dim < rank:
                raise VerifyException(f"Out-of-bounds dimension {dim}, expected to be in range [0, {rank})")
            if dim in reduced:
                raise VerifyException(f"Duplicate reduction dimension: {dim}")
            reduced.add(dim)
        return [dim for dim in range(rank) if dim not in reduced]


def reducer_body(reducer: type[CommutativeElementwiseOp], operand: SSAValue) -> Region:
    """Build a body that applies `reducer` to two scalars of the operand's element type."""
    type_ = scalar(tensor_type(operand).element_type)
    block = Block(arg_types=(type_, type_))
    applied = reducer.create(operands=block.args, result_types=(type_,))
    block.add_ops((applied, ReturnOp.create(operands=applied.results)))
    return Region(block)
