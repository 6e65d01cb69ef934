"""Combining many elements into one with a computation given as a region: reduce, reduce_window, map, sort, ..."""

from typing import Self

from xdsl.dialects.builtin import (
    I64,
    BoolAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes import FALSE, I64_ARRAY, i64_array
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.definition import define
from sdy.stablehlo.elementwise import AddOp, AndOp, CommutativeElementwiseOp, MaxOp, MinOp, MulOp, OrOp, XorOp
from sdy.stablehlo.shape_checks import tensor_type, verify_shape
from sdy.stablehlo.struct_attribute import dims_text, parse_dims

REDUCERS: dict[str, type[CommutativeElementwiseOp]] = {
    reducer.name: reducer for reducer in (AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp, XorOp)
}
"""The operations that `applies` may name."""


@define
class ReduceOp(IRDLOperation):
    """Each input's elements along the dimensions combined, from its init value on, by the body."""

    name = "stablehlo.reduce"
    inputs = var_operand_def(TensorType)
    init_values = var_operand_def(TensorType)
    dimensions = prop_def(I64_ARRAY)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read `(%x init: %0) applies stablehlo.add across dimensions = [1] : type`, or the body after `reducer`."""

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
        return cls.create(
            operands=operands,
            result_types=types.outputs.data,
            properties={"dimensions": i64_array(*dimensions)},
            attributes=attributes,
            regions=(body,),
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
        """Write the short form where the body is one commutative operation on its arguments."""

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
        """The one commutative operation that the body applies to its two arguments, None for any other body."""
        block = self.body.block
        first, last = block.first_op, block.last_op
        if (
            isinstance(first, CommutativeElementwiseOp)
            and isinstance(last, ReturnOp)
            and first.next_op is last
            and tuple(first.operands) == tuple(block.args)
            and tuple(last.operands) == tuple(first.results)
            and first.lhs.type == first.rhs.type == first.result.type
            and first.lhs.type == TensorType(tensor_type(self.inputs[0]).element_type, ())
        ):
            return first
        return None

    def verify_(self) -> None:
        """Refuse dimensions that are not distinct dimensions of the inputs, and results of other sizes."""
        dims = self.dimensions.get_values()
        shape = tensor_type(self.inputs[0]).get_shape()
        for dim in dims:
            if not 0 <= dim < len(shape):
                raise VerifyException(f"Out-of-bounds dimension {dim}, expected to be in range [0, {len(shape)})")
        if len(set(dims)) != len(dims):
            raise VerifyException(f"Duplicate reduction dimension: {next(d for d in dims if dims.count(d) > 1)}")
        if not len(self.inputs) == len(self.init_values) == len(self.res):
            raise VerifyException(f"expects the reduction-region to take {2 * len(self.inputs)} parameters")
        terminator = self.body.block.last_op
        returned = () if terminator is None else terminator.operands
        for number, (init_value, value) in enumerate(zip(self.init_values, returned, strict=False)):
            first, second = (isinstance(tensor_type(of).element_type, IntegerType) for of in (init_value, value))
            if first != second:
                raise VerifyException(
                    f"The element-type of reduction-region's result type at index {number} is expected to be promotable"
                    f" from the op's corresponding init-value element-type: '{value.type}' vs '{init_value.type}'"
                )
        for result in self.res:
            verify_shape(result, [size for dim, size in enumerate(shape) if dim not in dims])


def reducer_body(reducer: type[CommutativeElementwiseOp], operand: SSAValue) -> Region:
    """A body that applies the reducer to two scalars of the operand's element type and returns its result."""
    scalar = TensorType(tensor_type(operand).element_type, ())
    block = Block(arg_types=(scalar, scalar))
    applied = reducer.create(operands=block.args, result_types=(scalar,))
    block.add_ops((applied, ReturnOp.create(operands=applied.results)))
    return Region(block)


@define
class ReduceWindowOp(IRDLOperation):
    """Each window of the inputs combined, from the init values on, by the body."""

    name = "stablehlo.reduce_window"
    inputs = var_operand_def(TensorType)
    init_values = var_operand_def(TensorType)
    window_dimensions = prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    base_dilations = opt_prop_def(I64_ARRAY)
    window_dilations = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)


@define
class SelectAndScatterOp(IRDLOperation):
    """Each source element combined by `scatter` into the operand's place that `select` chooses in its window."""

    name = "stablehlo.select_and_scatter"
    operand = operand_def(TensorType)
    source = operand_def(TensorType)
    init_value = operand_def(TensorType)
    window_dimensions = opt_prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)
    select = region_def("single_block")
    scatter = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())


@define
class MapOp(IRDLOperation):
    """The computation applied to the elements at each place."""

    name = "stablehlo.map"
    inputs = var_operand_def(TensorType)
    dimensions = prop_def(I64_ARRAY)
    result = result_def(TensorType)
    computation = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())


@define
class SortOp(IRDLOperation):
    """The inputs sorted together along a dimension, in the order that the comparator says."""

    name = "stablehlo.sort"
    inputs = var_operand_def(TensorType)
    dimension = opt_prop_def(IntegerAttr[I64], IntegerAttr(-1, i64))
    is_stable = opt_prop_def(BoolAttr, FALSE)
    res = var_result_def(TensorType)
    comparator = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
