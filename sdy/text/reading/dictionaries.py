"""The parser of dictionaries: `{name = value, "another name" = value, unit}`."""

from xdsl.dialects.builtin import DictionaryAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.text.reading.tokens import TokenParser


class DictionaryParser(TokenParser):
    """Mixin of the parser for dictionaries."""

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        """Parse a dictionary, if one starts here; otherwise return an empty one."""
        return self.parse_dictionary() if self.current_token.kind is MLIRTokenKind.L_BRACE else {}

    def parse_optional_properties_dict(self) -> dict[str, Attribute]:
        """Parse the properties of an operation, `<{...}>`, if they start here."""
        if self.parse_optional_punctuation("<") is None:
            return {}
        start = self.pos
        properties = self.parse_attribute()
        self.parse_punctuation(">", " to close properties")
        if not isinstance(properties, DictionaryAttr):
            self.raise_error("expected DictionaryAttr to set properties", start)
        return dict(properties.data)

    def parse_builtin_dict_attr(self) -> DictionaryAttr:
        return DictionaryAttr(self.parse_dictionary())

    def parse_dictionary(self) -> dict[str, Attribute]:
        """Parse a dictionary. Raises ParseError if none starts here."""
        entries: dict[str, Attribute] = {}

        def parse_entry() -> None:
            start = self.pos
            name = self.parse_optional_identifier_or_str_literal()
            if name is None:
                self.raise_error("expected attribute name")
            if not name:
                self.raise_error("expected valid attribute name", start)
            if name in entries:
                self.raise_error(f"duplicate key '{name}' in dictionary attribute", start)
            has_value = self.parse_optional_punctuation("=") is not None
            entries[name] = self.parse_typed_attribute() if has_value else UnitAttr()

        self.parse_comma_separated_list(self.Delimiter.BRACES, parse_entry, " in attribute dictionary")
        return entries
