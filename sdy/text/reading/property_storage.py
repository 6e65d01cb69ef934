"""Checks that the properties `<{...}>` of an operation can be stored.

MLIR stores each property as an attribute of the class in the operation's definition, and the parser reports an
attribute of another class. Further constraints are checked by the verifier.
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

from sdy.ir.constraints import I64_ELEMENTS
from sdy.text.printing import Printer
from sdy.text.verification.constraint_words import describe_constraint

_BOOLEAN = "bool attribute"


class PropertyStorageError(Exception):
    """An operation cannot store a property."""


def check_storage(op_type: type[Operation], properties: dict[str, Attribute]) -> None:
    """Raise PropertyStorageError if operations of this class cannot store these properties.

    Unknown properties are accepted, as xDSL's definitions lack some of MLIR's.
    """
    if not properties or not issubclass(op_type, IRDLOperation):
        return
    definition = op_type.get_irdl_definition()
    if not definition.properties and not definition.attributes:
        raise PropertyStorageError(f"{_invalid(op_type, properties)}this operation has empty properties")
    segments = {option.attribute_name for option in definition.options if isinstance(option, AttrSizedSegments)}
    for name, attribute in sorted(properties.items()):
        if (property_ := definition.properties.get(name)) is None:
            continue
        if name in segments:
            if not isinstance(attribute, DenseArrayBase):
                raise PropertyStorageError(f"{_invalid(op_type, properties)}for `{name}`: expected DenseI32ArrayAttr")
        elif not can_store(property_.constr, attribute):
            failure = f"Invalid attribute `{name}` in property conversion: {_text(attribute)}"
            raise PropertyStorageError(_invalid(op_type, properties) + failure)


def can_store(constraint: AttrConstraint, attribute: Attribute) -> bool:
    """Return whether a property with this constraint can store an attribute."""
    match constraint:
        case AnyOf(attr_constrs=parts):
            # Alternatives with the same description share a storage class; others are stored as any attribute.
            return len({describe_constraint(part) for part in parts}) > 1 or any(
                can_store(part, attribute) for part in parts
            )
        case ArrayOfConstraint():
            return isinstance(attribute, ArrayAttr)
        case ParamAttrConstraint() if constraint == I64_ELEMENTS:
            return isinstance(attribute, DenseIntOrFPElementsAttr) and not isinstance(
                attribute.get_element_type(), AnyFloat
            )
        case ParamAttrConstraint(base_attr=kind) if kind is IntegerAttr:
            return isinstance(attribute, IntegerAttr) and (
                describe_constraint(constraint) != _BOOLEAN or _is_boolean(cast(IntegerAttr, attribute))
            )
        case _:
            return constraint.verifies(attribute)


def _is_boolean(attribute: IntegerAttr) -> bool:
    return attribute.type == i1


def _invalid(op_type: type[Operation], properties: dict[str, Attribute]) -> str:
    return f"invalid properties {_text(DictionaryAttr(properties))} for op {op_type.name}: "


def _text(attribute: Attribute) -> str:
    printer = Printer()
    printer.print_attribute(attribute)
    return printer.text().strip()
