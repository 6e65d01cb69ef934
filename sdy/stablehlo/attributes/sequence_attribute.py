"""Struct attributes `<key = value, ...>` with all keys, in a fixed order."""

from dataclasses import fields
from typing import Any, Generic, get_type_hints

from xdsl.ir import TypeAttribute
from xdsl.parser import AttrParser

from sdy.parse_errors import explained
from sdy.stablehlo.attributes.struct_attribute import PARSE, Struct, StructAttr

_CPP_TYPES: dict[Any, str] = {
    TypeAttribute: "Type",
    int: "int64_t",
    bool: "bool",
    tuple[int, ...]: "::llvm::ArrayRef<int64_t>",
}
"""The C++ types of fields, named in error messages."""


class SequenceAttr(StructAttr[Struct], Generic[Struct]):
    """An attribute around a dataclass whose fields are all required, in order."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Struct:
        """Parse `<key = value, ...>`."""
        types = get_type_hints(cls.STRUCT)
        values: list[Any] = []
        for field in fields(cls.STRUCT):
            parser.parse_punctuation("," if values else "<")
            parser.parse_keyword(field.name)
            parser.parse_punctuation("=")
            type_ = types[field.name]
            failure = (
                f"failed to parse StableHLO_{cls.STRUCT.__name__} parameter '{_camel_case(field.name)}' "
                f"which is to be a `{_CPP_TYPES[type_]}`"
            )
            values.append(explained(parser, PARSE[type_], failure))
        parser.parse_punctuation(">")
        return cls.STRUCT(*values)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
