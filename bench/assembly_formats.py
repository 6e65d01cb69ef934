"""Cost of xDSL's declarative assembly formats, in microseconds per operation to parse and print.

    python bench/assembly_formats.py

Each operation is parsed and printed by its assembly format, by a pair of handwritten functions with the same syntax,
and in generic form.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

from measure import least_seconds, nothing
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.shape import TransposeOp
from sdy.stablehlo.slicing import SliceOp
from sdy.text import context, format, parse
from sdy.text.reading.parser import parse_module

OPERATIONS = 3000

Syntax = tuple[Any, Any]
"""A class method that parses an operation, and a method that prints it."""


def read_types(parser: Parser) -> FunctionType:
    """Parse `: (tensor<4xf32>) -> tensor<4xf32>`."""
    parser.parse_punctuation(":")
    types = parser.parse_type()
    assert isinstance(types, FunctionType)
    return types


def write_types(op: Operation, printer: Printer) -> None:
    """Print the attributes and the function type."""
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_function_type(op.operand_types, op.result_types)


def read_add(parser: Parser) -> AddOp:
    """Parse `%0, %1 : tensor<4xf32>`."""
    start = parser.pos
    lhs = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    rhs = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    operands = parser.resolve_operands((lhs, rhs), (type_, type_), start)
    return AddOp.create(operands=operands, result_types=(type_,), attributes=attributes)


def write_add(op: AddOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


def read_transpose(parser: Parser) -> TransposeOp:
    """Parse `%0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>`."""
    start = parser.pos
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    parser.parse_keyword("dims")
    parser.parse_punctuation("=")
    dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    attributes = parser.parse_optional_attr_dict()
    types = read_types(parser)
    return TransposeOp.create(
        operands=parser.resolve_operands((operand,), types.inputs.data, start),
        result_types=types.outputs.data,
        properties={"permutation": i64_array(*dims)},
        attributes=attributes,
    )


def write_transpose(op: TransposeOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_operand(op.operand)
    printer.print_string(f", dims = [{', '.join(map(str, op.permutation.get_values()))}]")
    write_types(op, printer)


def read_slice(parser: Parser) -> SliceOp:
    """Parse `%0 [0:2, 0:8:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>`."""

    def read_range() -> tuple[int, int, int]:
        first = parser.parse_integer()
        parser.parse_punctuation(":")
        limit = parser.parse_integer()
        return first, limit, 1 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()

    start = parser.pos
    operand = parser.parse_unresolved_operand()
    ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, read_range)
    attributes = parser.parse_optional_attr_dict()
    types = read_types(parser)
    names = ("start_indices", "limit_indices", "strides")
    return SliceOp.create(
        operands=parser.resolve_operands((operand,), types.inputs.data, start),
        result_types=types.outputs.data,
        properties={name: i64_array(*column) for name, column in zip(names, zip(*ranges, strict=True), strict=True)},
        attributes=attributes,
    )


def write_slice(op: SliceOp, printer: Printer) -> None:
    ranges = (f"{first}:{limit}" + (f":{stride}" if stride != 1 else "") for first, limit, stride in op.ranges())
    printer.print_string(" ")
    printer.print_operand(op.operand)
    printer.print_string(f" [{', '.join(ranges)}]")
    write_types(op, printer)


class Case(NamedTuple):
    """An operation, its text, and handwritten functions that parse and print it."""

    op_class: type[IRDLOperation]
    text: str
    read: Callable[[Parser], IRDLOperation]
    write: Callable[[Any, Printer], None]


CASES = (
    Case(AddOp, "stablehlo.add %a, %a : tensor<4x8xf32>", read_add, write_add),
    Case(
        TransposeOp,
        "stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
        read_transpose,
        write_transpose,
    ),
    Case(SliceOp, "stablehlo.slice %a [0:2, 0:8:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>", read_slice, write_slice),
)


def main() -> None:
    """Print the table."""
    table = Table(
        "operation", *(f"{what} {how}" for what in ("read", "print") for how in ("format", "hand", "generic"))
    )
    for case in CASES:
        lines = "".join(f"  %{number} = {case.text}\n" for number in range(OPERATIONS))
        seconds = measure(case, f"func.func @f(%a: tensor<4x8xf32>) {{\n{lines}  return\n}}\n")
        table.add_row(
            case.op_class.name.partition(".")[2], *(f"{value / OPERATIONS * 1e6:.0f} µs" for value in seconds)
        )
    Console().print(table)


def measure(case: Case, text: str) -> list[float]:
    """Return the seconds to parse, then to print: by assembly format, by hand, and in generic form."""
    module = parse(text)
    generic = format(module, generic=True)
    by_format: Syntax = case.op_class.parse, case.op_class.print
    by_hand: Syntax = staticmethod(case.read), case.write

    def use(syntax: Syntax) -> None:
        for name, function in zip(("parse", "print"), syntax, strict=True):
            setattr(case.op_class, name, function)

    def read(text: str, _: object) -> object:
        return parse_module(text, "-", context())

    printed = format(module)
    use(by_hand)
    assert format(parse(text)) == printed
    seconds = least_seconds(
        {
            "read by format": (partial(use, by_format), partial(read, text)),
            "read by hand": (partial(use, by_hand), partial(read, text)),
            "read generic": (nothing, partial(read, generic)),
            "print by format": (partial(use, by_format), lambda _: format(module)),
            "print by hand": (partial(use, by_hand), lambda _: format(module)),
            "print generic": (nothing, lambda _: format(module, generic=True)),
        }
    )
    use(by_format)
    return list(seconds.values())


if __name__ == "__main__":
    main()
