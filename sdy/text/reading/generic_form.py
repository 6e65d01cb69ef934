"""The generic form of operations: `%0 = "foo.op"(%a, %b) <{key = 1}> {other} : (i32, i32) -> i32`."""

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Operation, Region
from xdsl.irdl import IRDLOperation, OptPropertyDef

from sdy.text.reading.dictionaries import DictionaryParser
from sdy.text.reading.memory import RememberingParser
from sdy.text.reading.property_storage import check_storage
from sdy.text.reading.values import ValueParser

_Dictionary = dict[str, Attribute]


@cache
def default_properties(op_type: type[Operation]) -> tuple[tuple[str, Attribute], ...]:
    """The properties that an operation of this type always has, with their values where a text does not give them."""
    if not issubclass(op_type, IRDLOperation):
        return ()
    properties = op_type.get_irdl_definition().properties.items()
    return tuple(
        (name, definition.default_value)
        for name, definition in properties
        if definition.default_value is not None and not isinstance(definition, OptPropertyDef)
    )


class GenericFormParser(RememberingParser, DictionaryParser, ValueParser):
    """The part of the parser that reads operations in the generic form."""

    def parse_generic_operation(self, op_type: type[Operation]) -> Operation:
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
        properties, attributes = self._inherent_and_other(op_type, properties, attributes)
        return op_type.create(
            operands=[self.resolve_operand(use, type_) for use, type_ in zip(uses or (), types, strict=True)],
            result_types=function_type.outputs.data,
            properties=properties,
            attributes=attributes,
            successors=successors,
            regions=regions,
            location=location,
        )

    def _inherent_and_other(
        self, op_type: type[Operation], properties: _Dictionary, attributes: _Dictionary
    ) -> tuple[_Dictionary, _Dictionary]:
        """The properties of an operation and its other attributes, as what it is given is understood."""
        if properties:
            check_storage(op_type, properties)
            return properties, attributes
        if attributes and issubclass(op_type, IRDLOperation):
            # Before MLIR had properties, they were written among the attributes.
            inherent = [name for name in op_type.get_irdl_definition().properties if name in attributes]
            return {name: attributes.pop(name) for name in inherent}, attributes
        return {}, attributes

    def _types_of(self, uses: Sequence[object], function_type: FunctionType, start: int) -> Sequence[Attribute]:
        types = function_type.inputs.data
        if len(uses) != len(types):
            plural = "" if len(uses) == 1 else "s"
            self.raise_error(f"expected {len(uses)} operand type{plural} but had {len(types)}", start)
        return types
