"""The parser of the generic form of operations: `"foo.op"(%a, %b) <{key = 1}> {other} : (i32, i32) -> i32`."""

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Operation, Region
from xdsl.irdl import IRDLOperation, OptPropertyDef

from sdy.text.printing.assembly_formats import ASSEMBLY_FORMATS
from sdy.text.reading.attribute_cache import AttributeCacheParser
from sdy.text.reading.dictionaries import DictionaryParser
from sdy.text.reading.property_storage import check_storage
from sdy.text.reading.values import ValueParser

_Dictionary = dict[str, Attribute]


@cache
def _default_properties(op_type: type[Operation]) -> tuple[tuple[str, Attribute], ...]:
    """Return the default values of an operation class's required properties."""
    if not issubclass(op_type, IRDLOperation):
        return ()
    properties = op_type.get_irdl_definition().properties.items()
    return tuple(
        (name, definition.default_value)
        for name, definition in properties
        if definition.default_value is not None and not isinstance(definition, OptPropertyDef)
    )


def split_inherent(op_type: type[Operation], attributes: _Dictionary) -> tuple[_Dictionary, _Dictionary]:
    """Split a dictionary of attributes into inherent ones, the operation's properties, and discardable ones.

    MLIR's older generic form, from before it had properties, puts both into one dictionary.
    """
    if not attributes or not issubclass(op_type, IRDLOperation):
        return {}, attributes
    inherent = [name for name in op_type.get_irdl_definition().properties if name in attributes]
    return {name: attributes.pop(name) for name in inherent}, attributes


def normalize(op: Operation) -> None:
    """Normalize an operation parsed in the generic form to the result of its assembly format.

    Missing properties get their default values; properties of MLIR that xDSL's definition lacks become attributes.
    """
    for name, value in _default_properties(op.__class__):
        op.properties.setdefault(name, value)
    if (assembly_format := ASSEMBLY_FORMATS.get(op.__class__)) is not None:
        op.attributes.update({key: op.properties.pop(key) for key in assembly_format.inherent if key in op.properties})


class GenericFormParser(AttributeCacheParser, DictionaryParser, ValueParser):
    """Mixin of the parser for operations in the generic form."""

    def parse_generic_operation(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, op_type: type[Operation], start: int
    ) -> Operation:
        """Parse an operation after its name, which begins at `start`."""
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
        # The older syntax has properties among the attributes.
        inherent, attributes = split_inherent(op_type, attributes)
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
