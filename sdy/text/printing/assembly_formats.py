"""MLIR's assembly formats of the modules, functions, calls and returns that xDSL prints differently.

The operations of this project define their formats in `parse` and `print`; this table overrides xDSL's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser, UnresolvedOperand

from sdy.parse_errors import parse_error
from sdy.text.printing.attribute_printer import AttributePrinter
from sdy.text.printing.inherent import Inherent, parse_inherent, print_attributes, print_with_inherent_last

_Argument = Parser.Argument | Attribute
_WithAttributes = tuple[_Argument, dict[str, Attribute]]

_FUNC_PROPERTIES = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
_FUNC_INHERENT = ("no_inline",)
_MODULE_INHERENT: Inherent = {"sym_visibility": StringAttr}
_CALL_INHERENT: Inherent = {"arg_attrs": ArrayAttr, "res_attrs": ArrayAttr, "no_inline": UnitAttr}


def _parse_module(parser: Parser) -> ModuleOp:
    name = parser.parse_optional_symbol_name()
    inherent = parse_inherent(parser, _MODULE_INHERENT)
    attributes = parser.parse_optional_attr_dict_with_keyword()
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    return ModuleOp(region, {**inherent, **(attributes.data if attributes else {})}, name)


def _print_module(module: ModuleOp, printer: AttributePrinter) -> None:
    if module.sym_name is not None:
        printer.print_string(" ")
        printer.print_symbol_name(module.sym_name.data)
    print_attributes(module, _MODULE_INHERENT, printer, print_keyword=True)
    printer.print_string(" ")
    printer.print_region(module.body, print_empty_block=False)


def _parse_func(parser: Parser) -> FuncOp:
    visibility = parser.parse_optional_visibility_keyword()
    name = parser.parse_symbol_name()
    arguments: list[_WithAttributes] = []
    parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_argument(parser, arguments))
    named = [argument for argument, _ in arguments if isinstance(argument, Parser.Argument)]
    results = _parse_results(parser)
    attributes = parser.parse_optional_attr_dict_with_keyword(_FUNC_PROPERTIES)
    start = parser.pos
    region = parser.parse_optional_region(named if named or not arguments else None)
    if region is not None and not region.blocks:
        raise parse_error(parser, "expected non-empty function body", start)
    types = [argument.type if isinstance(argument, Parser.Argument) else argument for argument, _ in arguments]
    func = FuncOp(
        name.data,
        (types, [result for result, _ in results]),
        Region() if region is None else region,
        visibility,
        arg_attrs=_attributes_of_each([attributes for _, attributes in arguments]),
        res_attrs=_attributes_of_each([attributes for _, attributes in results]),
    )
    if attributes is not None:
        func.attributes.update(attributes.data)
    return func


def _parse_argument(parser: Parser, earlier: list[_WithAttributes]) -> None:
    start = parser.pos
    argument = parser.parse_optional_argument()
    if earlier and (argument is not None) != isinstance(earlier[-1][0], Parser.Argument):
        expected = "SSA identifier" if argument is None else "type instead of SSA identifier"
        raise parse_error(parser, f"expected {expected}", start)
    argument = argument or parser.parse_type()
    attributes = parser.parse_optional_attr_dict()
    location = parser.parse_optional_location()
    if isinstance(argument, Parser.Argument):
        argument.location = argument.location or location
    earlier.append((argument, attributes))


def _parse_results(parser: Parser) -> list[tuple[Attribute, dict[str, Attribute]]]:
    if parser.parse_optional_punctuation("->") is None:
        return []
    results = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: (parser.parse_type(), parser.parse_optional_attr_dict())
    )
    return [(parser.parse_type(), {})] if results is None else list(results)


def _attributes_of_each(attributes: list[dict[str, Attribute]]) -> ArrayAttr[DictionaryAttr] | None:
    return ArrayAttr(map(DictionaryAttr, attributes)) if any(attributes) else None


def _print_func(func: FuncOp, printer: AttributePrinter) -> None:
    if func.sym_visibility is not None:
        printer.print_string(f" {func.sym_visibility.data}")
    printer.print_string(" ")
    printer.print_symbol_name(func.sym_name.data)
    _print_arguments(func, printer)
    _print_results(func.function_type, func.res_attrs, printer)
    print_with_inherent_last(func, _FUNC_INHERENT, printer)
    if func.body.blocks:
        printer.print_string(" ")
        printer.print_region(func.body, print_entry_block_args=False, print_empty_block=False)


def _print_arguments(func: FuncOp, printer: AttributePrinter) -> None:
    types = func.function_type.inputs.data
    entry = func.body.blocks.first

    def print_argument(number: int) -> None:
        if entry is not None:
            printer.print_ssa_value(entry.args[number])
            printer.print_string(": ")
        printer.print_attribute(types[number])
        if func.arg_attrs is not None:
            printer.print_op_attributes(func.arg_attrs.data[number].data)
        if entry is not None and printer.print_debuginfo:
            printer.print_block_argument_location(entry.args[number])

    with printer.in_parens():
        printer.print_list(range(len(types)), print_argument)


def _print_results(
    function_type: FunctionType, attributes: ArrayAttr[DictionaryAttr] | None, printer: AttributePrinter
) -> None:
    types = function_type.outputs.data
    if not types:
        return

    def print_result(number: int) -> None:
        printer.print_attribute(types[number])
        if attributes is not None:
            printer.print_op_attributes(attributes.data[number].data)

    printer.print_string(" -> ")
    annotated = attributes is not None and any(each.data for each in attributes)
    if len(types) == 1 and not annotated and not isinstance(types[0], FunctionType):
        print_result(0)
        return
    with printer.in_parens():
        printer.print_list(range(len(types)), print_result)


def _parse_call(parser: Parser) -> CallOp:
    start = parser.pos
    callee = parser.parse_attribute()
    if not isinstance(callee, SymbolRefAttr) or callee.nested_references:
        raise parse_error(parser, "invalid kind of attribute specified", start)
    parser.parse_punctuation("(")
    start = parser.pos
    operands = _parse_operands(parser)
    parser.parse_punctuation(")")
    attributes = {**parse_inherent(parser, _CALL_INHERENT), **parser.parse_optional_attr_dict()}
    parser.parse_punctuation(":")
    type_start = parser.pos
    function_type = parser.parse_type()
    if not isinstance(function_type, FunctionType):
        problem = f"expected builtin.function, but found '{function_type}'"
        raise parse_error(parser, f"invalid kind of type specified: {problem}", type_start)
    arguments = parser.resolve_operands(operands, function_type.inputs.data, start)
    call = CallOp(callee, arguments, function_type.outputs.data)
    call.attributes.update(attributes)
    return call


def _print_call(call: CallOp, printer: AttributePrinter) -> None:
    printer.print_string(" ")
    printer.print_attribute(call.callee)
    printer.print_operands(call.arguments)
    print_attributes(call, _CALL_INHERENT, printer)
    printer.print_string(" : ")
    printer.print_operation_type(call)


def _parse_return(parser: Parser) -> ReturnOp:
    attributes = parser.parse_optional_attr_dict()
    start = parser.pos
    operands = _parse_operands(parser)
    types: list[Attribute] = []
    if operands:
        parser.parse_punctuation(":")
        types.extend(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))
    result = ReturnOp(*parser.resolve_operands(operands, types, start))
    result.attributes.update(attributes)
    return result


def _parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    operands = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    return operands or []


@dataclass(frozen=True, slots=True)
class AssemblyFormat:
    """The parser and printer of an operation's assembly format, after its name."""

    parse: Callable[[Parser], Operation]
    print: Callable[[Any, AttributePrinter], None]

    inherent: tuple[str, ...] = ()
    """Attributes that are properties in MLIR's generic form but missing from xDSL's definition."""


ASSEMBLY_FORMATS: dict[type[Operation], AssemblyFormat] = {
    ModuleOp: AssemblyFormat(_parse_module, _print_module, tuple(_MODULE_INHERENT)),
    FuncOp: AssemblyFormat(_parse_func, _print_func, _FUNC_INHERENT),
    CallOp: AssemblyFormat(_parse_call, _print_call, tuple(_CALL_INHERENT)),
    ReturnOp: AssemblyFormat(_parse_return, ReturnOp.print),
}

WITHOUT_ATTRIBUTES = frozenset(
    ("arith.cmpf", "arith.cmpi", "linalg.broadcast", "linalg.reduce", "linalg.transpose", "tensor.empty")
)
"""Operations whose assembly format in xDSL drops discardable attributes, such as shardings.

With attributes they are printed in the generic form."""
