"""Properties outside an operation's assembly format: `call @f() <no_inline> {a}`, in older versions `{a, no_inline}`.

xDSL's definitions lack these properties, so its operations hold them as discardable attributes.
"""

from collections.abc import Container

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from sdy.parse_errors import parse_error
from sdy.text.printing.attribute_printer import AttributePrinter

Inherent = dict[str, type[Attribute]]
"""The names of such properties, in the order of MLIR's definition, and their attribute classes."""


def parse_inherent(parser: Parser, kinds: Inherent) -> dict[str, Attribute]:
    """Parse properties in angle brackets, if there are any: `<no_inline, arg_attrs = [{}]>`."""
    if parser.parse_optional_punctuation("<") is None:
        return {}
    properties: dict[str, Attribute] = {}
    has_braces = parser.parse_optional_punctuation("{") is not None
    end = "}" if has_braces else ">"
    if parser.parse_optional_punctuation(end) is None:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_property(parser, kinds, properties))
        parser.parse_punctuation(end)
    if has_braces:
        parser.parse_punctuation(">")
    return properties


def _parse_property(parser: Parser, kinds: Inherent, properties: dict[str, Attribute]) -> None:
    start = parser.pos
    name = parser.parse_identifier()
    if name not in kinds or name in properties:
        raise parse_error(parser, f"duplicate or unknown property in properties dictionary: {name}", start)
    if kinds[name] is UnitAttr and parser.parse_optional_punctuation("=") is None:
        properties[name] = UnitAttr()
        return
    if kinds[name] is not UnitAttr:
        parser.parse_punctuation("=")
    start = parser.pos
    properties[name] = parser.parse_attribute()
    if not isinstance(properties[name], kinds[name]):
        raise parse_error(parser, "invalid kind of attribute specified", start)


def print_attributes(
    op: Operation, inherent: Inherent, printer: AttributePrinter, *, print_keyword: bool = False
) -> None:
    """Print an operation's attributes, with the inherent ones in angle brackets if the printed version does so."""
    inherent_names = [name for name in inherent if name in op.attributes]
    if not inherent_names or not printer.syntax.prints_properties_in_brackets:
        printer.print_op_attributes(op.attributes, print_keyword=print_keyword)
        return
    printer.print_string(" ")
    with printer.in_angle_brackets():
        printer.print_list(inherent_names, lambda name: _print_property(name, op.attributes[name], printer))
    printer.print_op_attributes(op.attributes, reserved_attr_names=inherent_names, print_keyword=print_keyword)


def print_with_inherent_last(op: Operation, inherent: Container[str], printer: AttributePrinter) -> None:
    """Print `attributes {...}`, with the inherent ones last if the printed version does so."""
    if op.attributes:
        has_properties = any(name in inherent for name in op.attributes)
        printer.print_string(" attributes ")
        printer.print_attr_dict(
            op.attributes, inherent if has_properties and printer.syntax.prints_properties_last else ()
        )


def _print_property(name: str, attribute: Attribute, printer: AttributePrinter) -> None:
    printer.print_string(name)
    if not isinstance(attribute, UnitAttr):
        printer.print_string(" = ")
        printer.print_attribute(attribute)
