"""The printer of attributes and types: numbers, constants, dictionaries, aliases, resources.

`AttributePrinter` extends xDSL's printer, so that the attributes of any dialect print. It buffers its text.
"""

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property, lru_cache, partial
from typing import ClassVar, TypeVar, cast, get_args

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AffineSetAttr,
    AnyFloat,
    ArrayAttr,
    Builtin,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float64Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnregisteredAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, BlockArgument

from sdy.ir.elements import MOST_LISTED_ELEMENTS, SparseElementsAttr, is_splat
from sdy.ir.open_syntax import OpenPrinter, print_element, print_elements
from sdy.text.affine import map_text, set_text
from sdy.text.printing.aliases import Aliases
from sdy.text.printing.floats import float_text
from sdy.text.printing.location_text import location_text
from sdy.text.printing.versions import Syntax, installed_syntax, syntax_of

T = TypeVar("T")

INDENT = "  "
_UNPRINTABLE = re.compile(rb"[^\x20-\x7e\n\t]")
_ESCAPED = re.compile(rb'[^\x20-\x7e]|["\\]')
_MAX_CACHED_LENGTH = 1 << 14
"""The longest cached text, in characters: caching every level of a deeply nested attribute would fill the memory."""

_USUAL_ARRAY_TYPES = {i32, i64}
"""The element types of nearly all dense arrays."""

_DEVICE_LISTS = {"replica_groups", "source_target_pairs"}
"""Attributes of collectives that list devices, printed without hexadecimal."""


class AttributePrinter(OpenPrinter):
    """Printer of attributes and types into a buffer, which `text` returns."""

    def __init__(
        self, *, generic: bool, debuginfo: bool, most_elements: float, with_aliases: bool, for_jaxlib: str | None
    ):
        super().__init__(print_generic_format=generic, print_debuginfo=debuginfo)
        self._requested_syntax = None if for_jaxlib is None else syntax_of(for_jaxlib)
        self.aliases = Aliases(with_aliases)
        self._most_elements = most_elements
        self._parts: list[str] = []
        self._attribute_texts: dict[int, tuple[Attribute, str]] = {}
        self._key_texts: dict[str, str] = {}
        self._resources: dict[str, None] = {}

    @cached_property
    def syntax(self) -> Syntax:
        """The syntax of the version of jaxlib to print for."""
        return self._requested_syntax or installed_syntax()

    def text(self) -> str:
        """Return everything printed so far, with the definitions of its aliases and resources."""
        program = "".join([*self._parts, "\n"])
        return self.aliases.define(program, partial(self._captured, self._print_in_full)) + self._resource_section()

    # Text

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print text, with its lines indented at the current level or at the level `indent`."""
        if "\n" in text:
            text = text.replace("\n", "\n" + INDENT * (self.indentation if indent is None else indent))
        self._parts.append(text)

    def print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self._parts.append("\n" + INDENT * (self.indentation if indent is None else indent))

    def print_bytes_literal(self, bytestring: bytes) -> None:
        """Print a string literal, with MLIR's escapes."""
        escaped = _ESCAPED.sub(_escaped, bytestring)
        self._parts.append(f'"{escaped.decode()}"')

    def print_float(self, value: float, type: AnyFloat) -> None:  # noqa: A002
        """Print a floating-point number without its type."""
        self._parts.append(float_text(value, math.copysign(1.0, value) < 0, type))

    # Attributes

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute or a type; texts are cached per object."""
        known = self._attribute_texts.get(id(attribute))
        if known is not None:
            self._parts.append(known[1])
            return
        self.aliases.visit(attribute)
        start = len(self._parts)
        if mark := self.aliases.mark(attribute):
            self._parts.append(mark)
        else:
            self._print_in_full(attribute)
        text = "".join(self._parts[start:])
        self._parts[start:] = [text]
        if "\n" not in text and len(text) <= _MAX_CACHED_LENGTH:
            self._attribute_texts[id(attribute)] = (attribute, text)

    def _print_in_full(self, attribute: Attribute) -> None:
        print_it = _printer_of(type(attribute))
        if print_it is not None:
            print_it(self, attribute)
        else:
            super().print_attribute(attribute)

    def _print_array(self, array: ArrayAttr[Attribute]) -> None:
        with self.in_square_brackets():
            self.print_list(array.data, self._print_element)

    def _print_map(self, attribute: AffineMapAttr) -> None:
        self.print_string(f"affine_map<{map_text(attribute.data)}>")

    def _print_set(self, attribute: AffineSetAttr) -> None:
        self.print_string(f"affine_set<{set_text(attribute.data)}>")

    def _print_location(self, location: LocationAttr) -> None:
        self.print_string(f"loc({location_text(location, self._location_part)})")

    def print_block_argument_location(self, argument: BlockArgument) -> None:
        """Print ` loc(...)`, which is never an alias, unlike an operation's."""
        self.aliases.visit(argument.location)
        self.print_string(f" loc({location_text(argument.location, self._location_part)})")

    def _location_part(self, part: Attribute) -> str:
        """Return the text of a part of a location; a nested location is printed as its alias if it has one."""
        if not isinstance(part, LocationAttr):
            return self.text_of(part)
        return self.aliases.mark(part) or location_text(part, self._location_part)

    def _print_element(self, attribute: Attribute) -> None:
        """Print an element of an array, without the default types i64 and f64."""
        match attribute:
            case IntegerAttr() if attribute.type == i64:
                self.print_int(attribute.value.data)
            case FloatAttr() if isinstance(attribute.type, Float64Type):
                self.print_float(attribute.value.data, attribute.type)
            case _:
                self.print_attribute(attribute)

    def _print_memref(self, memref: MemRefType | UnrankedMemRefType) -> None:
        parts = [self.text_of(memref.element_type)]
        if isinstance(memref, MemRefType):
            parts[0] = "".join(f"{'?' if size == DYNAMIC_INDEX else size}x" for size in memref.get_shape()) + parts[0]
            if not isinstance(memref.layout, NoneAttr):
                parts.append(self.text_of(memref.layout))
        else:
            parts[0] = f"*x{parts[0]}"
        if not isinstance(memref.memory_space, NoneAttr):
            parts.append(self._captured(self._print_element, memref.memory_space))
        self.print_string(f"memref<{', '.join(parts)}>")

    def _print_tensor(self, tensor: TensorType[Attribute]) -> None:
        sizes = [f"{'?' if size.data == DYNAMIC_INDEX else size.data}x" for size in tensor.shape.data]
        encoding = "" if type(tensor.encoding) is NoneAttr else f", {self.text_of(tensor.encoding)}"
        self._parts.append(f"tensor<{''.join(sizes)}{self.text_of(tensor.element_type)}{encoding}>")

    def _print_dense_array(self, array: DenseArrayBase) -> None:
        if array.elt_type in _USUAL_ARRAY_TYPES:
            values = ", ".join(map(str, cast(DenseArrayBase[IntegerType], array).get_values()))
            self._parts.append(f"array<{self.text_of(array.elt_type)}{': ' if values else ''}{values}>")
        else:
            super().print_attribute(array)

    def _print_unregistered(self, attribute: UnregisteredAttr) -> None:
        """Print `!foo.bar<1>`, or `!foo<1>` if the body does not begin with a name."""
        if not attribute.is_opaque.data:
            super().print_attribute(attribute)
            return
        dialect, _, name = attribute.attr_name.data.partition(".")
        # Unprintable characters occur only in its strings, where they can be escaped.
        rest = _UNPRINTABLE.sub(_escaped, attribute.value.data.encode()).decode()
        is_pretty = name and (not rest or (rest.startswith("<") and rest.endswith(">")))
        sigil = "!" if attribute.is_type.data else "#"
        self._parts.append(f"{sigil}{dialect}.{name}{rest}" if is_pretty else f"{sigil}{dialect}<{name}{rest}>")

    def print_resource_handle(self, dialect: str, handle: str) -> None:
        """Print the key of a resource; its blob is printed after the program."""
        self._resources[handle] = None
        self.print_identifier_or_string_literal(handle)

    def _resource_section(self) -> str:
        """Return the section with the blobs of the resources used in the program."""
        storage = Builtin.get_interface(OpAsmDialectInterface)
        entries = [
            f'      {self._key_text(key)}: "{blob}"'
            for key in self._resources
            if storage is not None and (blob := storage.lookup(key))
        ]
        if not entries:
            return ""
        lines = ",\n".join(entries)
        return f"\n{{-#\n  dialect_resources: {{\n    builtin: {{\n{lines}\n    }}\n  }}\n#-}}\n"

    def _print_dense(self, attribute: DenseIntOrFPElementsAttr, most_listed: float = MOST_LISTED_ELEMENTS) -> None:
        if len(attribute) > self._most_elements and not is_splat(attribute):
            self.print_string("dense_resource<__elided__> : ")
        else:
            self.print_string("dense<")
            self._print_elements(attribute, most_listed)
            self.print_string("> : ")
        self.print_attribute(attribute.get_type())

    def _print_elements(self, attribute: DenseIntOrFPElementsAttr, most_listed: float) -> None:
        """Print the elements, in hexadecimal if they are not a splat and more than `most_listed`."""
        if not len(attribute):
            return
        if is_splat(attribute):
            element_type = attribute.get_element_type()
            [element] = element_type.unpack(attribute.data.data[: element_type.compile_time_size], 1)
            print_element(attribute, element, self)
        elif len(attribute) <= most_listed:
            # xDSL's `print_builtin` treats 0.0 and -0.0 as equal.
            print_elements(attribute, attribute.get_values(), self)
        else:
            self.print_string(f'"{_hexadecimal(attribute)}"')

    def _print_sparse(self, attribute: SparseElementsAttr) -> None:
        self.print_string("sparse<")
        if len(attribute.values):
            self._print_elements(attribute.indices, math.inf)
            self.print_string(", ")
            self._print_elements(attribute.values, MOST_LISTED_ELEMENTS)
        self.print_string("> : ")
        self.print_attribute(attribute.type)

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute], last: Container[str] = ()) -> None:
        """Print a dictionary sorted by key, the keys in `last` after all others."""
        in_order = sorted(attr_dict.items(), key=lambda entry: (entry[0] in last, entry[0]))
        entries = [self._entry_text(key, value) for key, value in in_order]
        self._parts.append(f"{{{', '.join(entries)}}}")

    def _entry_text(self, key: str, value: Attribute) -> str:
        if isinstance(value, UnitAttr):
            return self._key_text(key)
        if key in _DEVICE_LISTS and type(value) is DenseIntOrFPElementsAttr and id(value) not in self._attribute_texts:
            # More readable than MLIR's own text, which is hexadecimal from some fifty pairs on; MLIR parses both.
            self._attribute_texts[id(value)] = (
                value,
                self._captured(partial(self._print_dense, most_listed=math.inf), value),
            )
        return f"{self._key_text(key)} = {self.text_of(value)}"

    def print_function_type(self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]) -> None:
        """Print `(f32, f32) -> f32`: a single output has no parentheses, unless it is a function type itself."""
        self._parts.append(self._function_type_text(input_types, output_types))

    def _function_type_text(self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]) -> str:
        inputs, outputs = ", ".join(map(self.text_of, input_types)), [*output_types]
        results = ", ".join(map(self.text_of, outputs))
        if len(outputs) != 1 or isinstance(outputs[0], FunctionType):
            results = f"({results})"
        return f"({inputs}) -> {results}"

    def text_of(self, attribute: Attribute) -> str:
        """Return the text that `print_attribute` would print."""
        known = self._attribute_texts.get(id(attribute))
        return known[1] if known is not None else self._captured(self.print_attribute, attribute)

    def _key_text(self, key: str) -> str:
        text = self._key_texts.get(key)
        if text is None:
            text = self._key_texts[key] = self._captured(self.print_identifier_or_string_literal, key)
        return text

    def _captured(self, print_it: Callable[[T], object], what: T) -> str:
        start = len(self._parts)
        print_it(what)
        text = "".join(self._parts[start:])
        del self._parts[start:]
        return text

    printers: ClassVar[Mapping[type[Attribute], Callable[..., None]]] = {
        AffineMapAttr: _print_map,
        AffineSetAttr: _print_set,
        ArrayAttr: _print_array,
        DenseArrayBase: _print_dense_array,
        DenseIntOrFPElementsAttr: _print_dense,
        MemRefType: _print_memref,
        SparseElementsAttr: _print_sparse,
        TensorType: _print_tensor,
        UnrankedMemRefType: _print_memref,
        UnregisteredAttr: _print_unregistered,
        **dict.fromkeys(get_args(LocationAttr), _print_location),
    }
    """Methods that override xDSL's printing, because MLIR's text differs or for speed."""


@lru_cache(maxsize=2**10)
def _printer_of(attribute_class: type[Attribute]) -> Callable[..., None] | None:
    # Cached: `isinstance` is slow on abstract classes when the answer is no.
    return next(
        (print_it for each, print_it in AttributePrinter.printers.items() if issubclass(attribute_class, each)), None
    )


def _escaped(character: re.Match[bytes]) -> bytes:
    return b"\\\\" if character[0] == b"\\" else b"\\%02X" % character[0][0]


def _hexadecimal(attribute: DenseIntOrFPElementsAttr) -> str:
    """Return the hexadecimal form of a constant, without quotes."""
    data = attribute.data.data
    element_type = attribute.get_element_type()
    if isinstance(element_type, IntegerType) and element_type.bitwidth < 8:
        mask = (1 << element_type.bitwidth) - 1
        data = data.translate(bytes(byte & mask for byte in range(256)))
    return f"0x{data.hex().upper()}"
