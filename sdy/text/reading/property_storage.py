"""What can stand between `<{` and `}>` after an operation's name: properties that have a place to be stored in.

MLIR keeps each property as an attribute of the kind that the operation's definition names, and says of another kind
that it cannot be converted. What the definition asks of an attribute beyond its kind is for the verifier.
"""

from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    ArrayOfConstraint,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    i1,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AnyOf, AttrConstraint, AttrSizedSegments, IRDLOperation, ParamAttrConstraint

from sdy.ir.attribute_constraints import I64_ELEMENTS
from sdy.text.printing.printer import Printer
from sdy.text.verification.constraint_words import words

_BOOLEAN = "bool attribute"


class NoPlaceError(Exception):
    """An operation has no place for a property; its text says so."""


def check_storage(op_type: type[Operation], given: dict[str, Attribute]) -> None:
    """Raises NoPlaceError where operations of this type cannot keep the properties in a text.

    One that the definition does not know passes: definitions of xDSL's know fewer than MLIR's.
    """
    if not given or not issubclass(op_type, IRDLOperation):
        return
    definition = op_type.get_irdl_definition()
    if not definition.properties and not definition.attributes:
        raise NoPlaceError(f"{_invalid(op_type, given)}this operation has empty properties")
    segments = {option.attribute_name for option in definition.options if isinstance(option, AttrSizedSegments)}
    for name, attribute in sorted(given.items()):
        if (property_ := definition.properties.get(name)) is None:
            continue
        if name in segments:
            if not isinstance(attribute, DenseArrayBase):
                raise NoPlaceError(f"{_invalid(op_type, given)}for `{name}`: expected DenseI32ArrayAttr")
        elif not can_store(property_.constr, attribute):
            failure = f"Invalid attribute `{name}` in property conversion: {_text(attribute)}"
            raise NoPlaceError(_invalid(op_type, given) + failure)


def can_store(constraint: AttrConstraint, attribute: Attribute) -> bool:
    """Whether an attribute is of a kind that a property with this constraint is stored as."""
    match constraint:
        case AnyOf(attr_constrs=parts):
            # Alternatives that MLIR has one name for are one kind; others are stored as any attribute.
            return len({words(part) for part in parts}) > 1 or any(can_store(part, attribute) for part in parts)
        case ArrayOfConstraint():
            return isinstance(attribute, ArrayAttr)
        case ParamAttrConstraint() if constraint == I64_ELEMENTS:
            return isinstance(attribute, DenseIntOrFPElementsAttr) and not isinstance(
                attribute.get_element_type(), AnyFloat
            )
        case ParamAttrConstraint(base_attr=kind) if kind is IntegerAttr:
            return isinstance(attribute, IntegerAttr) and (
                words(constraint) != _BOOLEAN or _is_boolean(cast(IntegerAttr, attribute))
            )
        case _:
            return constraint.verifies(attribute)


def _is_boolean(attribute: IntegerAttr) -> bool:
    return attribute.type == i1


def _invalid(op_type: type[Operation], given: dict[str, Attribute]) -> str:
    return f"invalid properties {_text(DictionaryAttr(given))} for op {op_type.name}: "


def _text(attribute: Attribute) -> str:
    printer = Printer()
    printer.print_attribute(attribute)
    return printer.text().strip()
