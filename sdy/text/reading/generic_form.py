"""The generic form of operations: `%0 = "foo.op"(%a, %b) <{key = 1}> {other} : (i32, i32) -> i32`."""

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Operation, Region
from xdsl.irdl import IRDLOperation, OptPropertyDef

from sdy.text.printing.assembly_formats import ASSEMBLY_FORMATS
from sdy.text.reading.dictionaries import DictionaryParser
from sdy.text.reading.memory import RememberingParser
from sdy.text.reading.property_storage import check_storage
from sdy.text.reading.values import ValueParser

_Dictionary = dict[str, Attribute]


@cache
def _default_properties(op_type: type[Operation]) -> tuple[tuple[str, Attribute], ...]:
    """The properties that an operation of this type always has, with their values where a text does not give them."""
    if not issubclass(op_type, IRDLOperation):
        return ()
    properties = op_type.get_irdl_definition().properties.items()
    return tuple(
        (name, definition.default_value)
        for name, definition in properties
        if definition.default_value is not None and not isinstance(definition, OptPropertyDef)
    )


def inherent_and_other(op_type: type[Operation], attributes: _Dictionary) -> tuple[_Dictionary, _Dictionary]:
    """The properties of an operation, and its other attributes, where all were given as attributes.

    They were written so before MLIR had properties.
    """
    if not attributes or not issubclass(op_type, IRDLOperation):
        return {}, attributes
    inherent = [name for name in op_type.get_irdl_definition().properties if name in attributes]
    return {name: attributes.pop(name) for name in inherent}, attributes


def complete(op: Operation) -> None:
    """Let `op`, which is as the generic form says, have what its own form would give it.

    That is the properties that it always has; and where MLIR has more properties than xDSL's definition, these are
    among the attributes.
    """
    for name, value in _default_properties(op.__class__):
        op.properties.setdefault(name, value)
    if (assembly_format := ASSEMBLY_FORMATS.get(op.__class__)) is not None:
        op.attributes.update({key: op.properties.pop(key) for key in assembly_format.inherent if key in op.properties})


class GenericFormParser(RememberingParser, DictionaryParser, ValueParser):
    """The part of the parser that reads operations in the generic form."""

    def parse_generic_operation(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, op_type: type[Operation], start: int
    ) -> Operation:
        """What follows the name of an operation, which stands at `start`."""
        self.parse_punctuation("(", " to start operand list")
        uses = self.parse_optional_undelimited_comma_separated_list(
            self.parse_optional_unresolved_operand, self.parse_unresolved_operand
        )
        self.parse_punctuation(")", " to end operand list")
        successors = self.parse_optional_successors() or []
        properties = self.parse_optional_properties_dict()
        regions: list[Region] = []
        if self.parse_optional_punctuation("(") is not None:
            regions = self.parse_comma_separated_list(self.Delimiter.NONE, self.parse_region)
            self.parse_punctuation(")", " to end region list")
        attributes = self.parse_optional_attr_dict()
        self.parse_punctuation(":", " followed by operation type")
        type_start = self.pos
        function_type = self.parse_function_type()
        location = self.parse_optional_location()
        types = self._types_of(uses or (), function_type, type_start)
        check_storage(op_type, properties)
        # Properties may also be written among the attributes, as they were before MLIR had them apart.
        inherent, attributes = inherent_and_other(op_type, attributes)
        properties = {**inherent, **properties}
        return op_type.create(
            operands=[self.resolve_operand(use, type_) for use, type_ in zip(uses or (), types, strict=True)],
            result_types=function_type.outputs.data,
            properties=properties,
            attributes=attributes,
            successors=successors,
            regions=regions,
            location=location or self.lines.attribute(start),
        )

    def _types_of(self, uses: Sequence[object], function_type: FunctionType, start: int) -> Sequence[Attribute]:
        types = function_type.inputs.data
        if len(uses) != len(types):
            plural = "" if len(uses) == 1 else "s"
            self.raise_error(f"expected {len(uses)} operand type{plural} but had {len(types)}", start)
        return types
