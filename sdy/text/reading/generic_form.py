"""The generic form of operations: `%0 = "foo.op"(%a, %b) <{key = 1}> {other} : (i32, i32) -> i32`.

MLIR's printer writes an operation without regions in one line. Such a line is taken apart by one expression, and its
dictionaries and its type are mostly known by their text already, so that what is left to do for an operation is to
look up its operands and to make it. Everything else is read token by token, and so is each dictionary and type that is
new.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Operation, Region
from xdsl.irdl import IRDLOperation, OptPropertyDef

from sdy.text.reading.dictionaries import DictionaryParser
from sdy.text.reading.lexer import VALUE_NAME
from sdy.text.reading.memory import DICTIONARY_EXTENT, FUNCTION_TYPE_EXTENT, RememberingParser
from sdy.text.reading.property_storage import check_storage
from sdy.text.reading.values import ValueParser

_Dictionary = dict[str, Attribute]
T = TypeVar("T")

_USE = re.compile(rf"%({VALUE_NAME})(?:#([0-9]++))?")
_ANY_USE = rf"%{VALUE_NAME}(?:#[0-9]++)?"
_ANY_USES = rf"(?:{_ANY_USE}(?:, {_ANY_USE})*+)?"
_ONE_LINE = re.compile(
    rf"\(({_ANY_USES})\)(?: (<{DICTIONARY_EXTENT}>))?(?: ({DICTIONARY_EXTENT}))? : ({FUNCTION_TYPE_EXTENT})"
)
_OPERANDS, _PROPERTIES, _ATTRIBUTES, _TYPE = 1, 2, 3, 4

_LONGEST_LINE = 4096
"""The text of a longer operation, one with a big constant for example, is not worth remembering."""


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

    def __init__(self, context: Context, text: str, filename: str):
        super().__init__(context, text, filename)
        self._property_dictionaries: dict[str, _Dictionary] = {"": {}}
        self._attribute_dictionaries: dict[str, _Dictionary] = {"": {}}
        self._checked: dict[tuple[type[Operation], int], _Dictionary] = {}

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        start = self.pos
        line = _ONE_LINE.match(self.lexer.input.content, start)
        if line is None or line.end() - start > _LONGEST_LINE:
            return self._parse_token_by_token(op_type)
        properties = self._part(line, _PROPERTIES, self._property_dictionaries, self.parse_optional_properties_dict)
        attributes = self._part(line, _ATTRIBUTES, self._attribute_dictionaries, self.parse_optional_attr_dict)
        function_type = self._part(line, _TYPE, self.function_types, self.parse_function_type)
        if properties is None or attributes is None or function_type is None:
            self._resume_from(start)
            return self._parse_token_by_token(op_type)
        self._resume_from(line.end())
        properties, attributes = self._inherent_and_other(op_type, properties, attributes.copy())
        uses = [*_USE.finditer(line.string, *line.span(_OPERANDS))]
        types = self._types_of(uses, function_type, line.start(_TYPE))
        return op_type.create(
            operands=[
                self.use(use[1], int(use[2] or 0), type_, use.start()) for use, type_ in zip(uses, types, strict=True)
            ],
            result_types=function_type.outputs.data,
            properties=properties,
            attributes=attributes,
        )

    def _parse_token_by_token(self, op_type: type[Operation]) -> Operation:
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
            # The same text is mostly read as the same dictionary, which is kept and so keeps its place in memory.
            if (op_type, id(properties)) not in self._checked:
                check_storage(op_type, properties)
                self._checked[op_type, id(properties)] = properties
            return properties.copy(), attributes
        if attributes and issubclass(op_type, IRDLOperation):
            # Before MLIR had properties, they were written among the attributes.
            inherent = [name for name in op_type.get_irdl_definition().properties if name in attributes]
            return {name: attributes.pop(name) for name in inherent}, attributes
        return {}, attributes

    def _part(self, line: re.Match[str], group: int, memory: dict[str, T], parse: Callable[[], T]) -> T | None:
        """What a part of the line says; None where the part is not what the expression took it for."""
        text = line[group] or ""
        known = memory.get(text)
        if known is not None:
            return known
        self._resume_from(line.start(group))
        parsed = parse()
        if not self.stands_at(line.end(group)):
            return None
        memory[text] = parsed
        return parsed

    def _types_of(self, uses: Sequence[object], function_type: FunctionType, start: int) -> Sequence[Attribute]:
        types = function_type.inputs.data
        if len(uses) != len(types):
            plural = "" if len(uses) == 1 else "s"
            self.raise_error(f"expected {len(uses)} operand type{plural} but had {len(types)}", start)
        return types
