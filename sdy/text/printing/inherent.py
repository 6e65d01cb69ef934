"""Properties that an operation's own form has no words for: `call @f() <no_inline> {a}`, earlier `{a, no_inline}`.

xDSL's definitions do not know them, so that they are among the attributes of its operations.
"""

from collections.abc import Container
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from sdy.parse_errors import parse_error

if TYPE_CHECKING:
    from sdy.text.printing.printer import Printer

Inherent = dict[str, type[Attribute]]
"""The names of such properties, in the order of MLIR's definition, and what they are."""


def parse_set_apart(parser: Parser, kinds: Inherent) -> dict[str, Attribute]:
    """`<no_inline, arg_attrs = [{}]>`, which may be missing: properties of these names and kinds."""
    if parser.parse_optional_punctuation("<") is None:
        return {}
    given: dict[str, Attribute] = {}
    has_braces = parser.parse_optional_punctuation("{") is not None
    end = "}" if has_braces else ">"
    if parser.parse_optional_punctuation(end) is None:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_property(parser, kinds, given))
        parser.parse_punctuation(end)
    if has_braces:
        parser.parse_punctuation(">")
    return given


def _parse_property(parser: Parser, kinds: Inherent, given: dict[str, Attribute]) -> None:
    start = parser.pos
    name = parser.parse_identifier()
    if name not in kinds or name in given:
        raise parse_error(parser, f"duplicate or unknown property in properties dictionary: {name}", start)
    if kinds[name] is UnitAttr and parser.parse_optional_punctuation("=") is None:
        given[name] = UnitAttr()
        return
    if kinds[name] is not UnitAttr:
        parser.parse_punctuation("=")
    start = parser.pos
    given[name] = parser.parse_attribute()
    if not isinstance(given[name], kinds[name]):
        raise parse_error(parser, "invalid kind of attribute specified", start)


def print_attributes(op: Operation, inherent: Inherent, printer: "Printer", *, print_keyword: bool = False) -> None:
    """The attributes of an operation; those that are properties in MLIR as the version that is printed for has them."""
    apart = [name for name in inherent if name in op.attributes]
    if not apart or not printer.forms.sets_properties_apart:
        printer.print_op_attributes(op.attributes, print_keyword=print_keyword)
        return
    printer.print_string(" ")
    with printer.in_angle_brackets():
        printer.print_list(apart, lambda name: _print_property(name, op.attributes[name], printer))
    printer.print_op_attributes(op.attributes, reserved_attr_names=apart, print_keyword=print_keyword)


def print_with_last(op: Operation, inherent: Container[str], printer: "Printer") -> None:
    """The attributes after their keyword, those that are properties in MLIR as the version that is printed for does."""
    if op.attributes:
        has_properties = any(name in inherent for name in op.attributes)
        printer.print_string(" attributes ")
        printer.print_attr_dict(
            op.attributes, inherent if has_properties and printer.forms.lists_properties_last else ()
        )


def _print_property(name: str, attribute: Attribute, printer: "Printer") -> None:
    printer.print_string(name)
    if not isinstance(attribute, UnitAttr):
        printer.print_string(" = ")
        printer.print_attribute(attribute)
