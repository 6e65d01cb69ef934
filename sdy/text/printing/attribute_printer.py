"""xDSL attributes and types -> MLIR text: numbers, constants, dictionaries, aliases, resources.

`AttributePrinter` is xDSL's printer, so that the attributes of any dialect print. It collects its text in memory.
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
from xdsl.ir import Attribute

from sdy.ir.elements import MOST_LISTED_ELEMENTS, SparseElementsAttr, is_splat
from sdy.ir.printing import OpenPrinter, print_element, print_elements
from sdy.text.affine import map_text, set_text
from sdy.text.printing.aliases import Aliases
from sdy.text.printing.floats import float_text
from sdy.text.printing.location_text import location_text
from sdy.text.printing.versions import Forms, forms_of, installed_forms

T = TypeVar("T")

INDENT = "  "
_NOT_PRINTED = re.compile(rb"[^\x20-\x7e\n\t]")
_NOT_PLAIN = re.compile(rb'[^\x20-\x7e]|["\\]')
_LONGEST_REMEMBERED = 1 << 14
"""Characters; of attributes that nest thousands of others, what each level says would fill the memory."""

_LISTED = {i32, i64}
"""Of what types dense arrays are, nearly all of them."""

_DEVICE_LISTS = {"replica_groups", "source_target_pairs"}
"""The attributes of collectives that list devices."""


class AttributePrinter(OpenPrinter):
    """Collects the text of what it prints; `text()` is all of it."""

    def __init__(
        self, *, generic: bool, debuginfo: bool, most_elements: float, with_aliases: bool, for_jaxlib: str | None
    ):
        super().__init__(print_generic_format=generic, print_debuginfo=debuginfo)
        self._asked_forms = None if for_jaxlib is None else forms_of(for_jaxlib)
        self.aliases = Aliases(with_aliases)
        self._most_elements = most_elements
        self._parts: list[str] = []
        self._attribute_texts: dict[int, tuple[Attribute, str]] = {}
        self._key_texts: dict[str, str] = {}
        self._resources: dict[str, None] = {}

    @cached_property
    def forms(self) -> Forms:
        """What the version of jaxlib that is printed for prints in its own way."""
        return self._asked_forms or installed_forms()

    def text(self) -> str:
        """Everything printed so far, and a newline, among the definitions of the aliases that it uses."""
        program = "".join([*self._parts, "\n"])
        return self.aliases.define(program, partial(self._captured, self._print_in_full)) + self._resource_section()

    # Text

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Add text; its lines are indented as what is around them, or by `indent` steps."""
        if "\n" in text:
            text = text.replace("\n", "\n" + INDENT * (self.indentation if indent is None else indent))
        self._parts.append(text)

    def print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self._parts.append("\n" + INDENT * (self.indentation if indent is None else indent))

    def print_bytes_literal(self, bytestring: bytes) -> None:
        """A string with what is not plain ASCII escaped as MLIR does."""
        escaped = _NOT_PLAIN.sub(_escaped, bytestring)
        self._parts.append(f'"{escaped.decode()}"')

    def print_float(self, value: float, type: AnyFloat) -> None:  # noqa: A002
        """A number as MLIR prints it, without its type."""
        self._parts.append(float_text(value, math.copysign(1.0, value) < 0, type))

    # Attributes

    def print_attribute(self, attribute: Attribute) -> None:
        """An attribute or a type; its text is made once for each object."""
        known = self._attribute_texts.get(id(attribute))
        if known is not None:
            self._parts.append(known[1])
            return
        self.aliases.meet(attribute)
        start = len(self._parts)
        if mark := self.aliases.mark(attribute):
            self._parts.append(mark)
        else:
            self._print_in_full(attribute)
        text = "".join(self._parts[start:])
        self._parts[start:] = [text]
        if "\n" not in text and len(text) <= _LONGEST_REMEMBERED:
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

    def _location_part(self, part: Attribute) -> str:
        """What stands for a part of a location: where it is a location itself, its alias or what it says."""
        if not isinstance(part, LocationAttr):
            return self.text_of(part)
        return self.aliases.mark(part) or location_text(part, self._location_part)

    def _print_element(self, attribute: Attribute) -> None:
        """An element of an array, where the types i64 and f64 go without saying."""
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
        if array.elt_type in _LISTED:
            values = ", ".join(map(str, cast(DenseArrayBase[IntegerType], array).get_values()))
            self._parts.append(f"array<{self.text_of(array.elt_type)}{': ' if values else ''}{values}>")
        else:
            super().print_attribute(array)

    def _print_unregistered(self, attribute: UnregisteredAttr) -> None:
        """`!foo.bar<1>`, or `!foo<1>` where what is inside does not begin with a name."""
        if not attribute.is_opaque.data:
            super().print_attribute(attribute)
            return
        dialect, _, name = attribute.attr_name.data.partition(".")
        # What is not printed can only stand in its strings, where it may as well be escaped.
        rest = _NOT_PRINTED.sub(_escaped, attribute.value.data.encode()).decode()
        is_pretty = name and (not rest or (rest.startswith("<") and rest.endswith(">")))
        sigil = "!" if attribute.is_type.data else "#"
        self._parts.append(f"{sigil}{dialect}.{name}{rest}" if is_pretty else f"{sigil}{dialect}<{name}{rest}>")

    def print_resource_handle(self, dialect: str, handle: str) -> None:
        """The key of a resource, which is printed after the program."""
        self._resources[handle] = None
        self.print_identifier_or_string_literal(handle)

    def _resource_section(self) -> str:
        """What the resources are that the program mentions, as far as it is known."""
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
        """The elements, in hexadecimal if they are more than `most_listed` different ones."""
        if not len(attribute):
            return
        if is_splat(attribute):
            element_type = attribute.get_element_type()
            [element] = element_type.unpack(attribute.data.data[: element_type.compile_time_size], 1)
            print_element(attribute, element, self)
        elif len(attribute) <= most_listed:
            # xDSL's `print_builtin` takes 0.0 and -0.0 for the same.
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
        """A dictionary, in the order of its keys, those that are `last` behind the others."""
        in_order = sorted(attr_dict.items(), key=lambda entry: (entry[0] in last, entry[0]))
        entries = [self._entry_text(key, value) for key, value in in_order]
        self._parts.append(f"{{{', '.join(entries)}}}")

    def _entry_text(self, key: str, value: Attribute) -> str:
        if isinstance(value, UnitAttr):
            return self._key_text(key)
        if key in _DEVICE_LISTS and type(value) is DenseIntOrFPElementsAttr and id(value) not in self._attribute_texts:
            # For a person to read: MLIR, which reads it as well, writes hexadecimal from some fifty pairs on.
            self._attribute_texts[id(value)] = (
                value,
                self._captured(partial(self._print_dense, most_listed=math.inf), value),
            )
        return f"{self._key_text(key)} = {self.text_of(value)}"

    def print_function_type(self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]) -> None:
        """`(f32, f32) -> f32`: a single output has no parentheses, unless it is a function type itself."""
        self._parts.append(self._function_type_text(input_types, output_types))

    def _function_type_text(self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]) -> str:
        inputs, outputs = ", ".join(map(self.text_of, input_types)), [*output_types]
        results = ", ".join(map(self.text_of, outputs))
        if len(outputs) != 1 or isinstance(outputs[0], FunctionType):
            results = f"({results})"
        return f"({inputs}) -> {results}"

    def text_of(self, attribute: Attribute) -> str:
        """The text that `print_attribute` would print. What is printed for each operation is put together from it."""
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
    """What is printed otherwise than by xDSL, or for each operation, and so faster."""


@lru_cache(maxsize=2**10)
def _printer_of(attribute_class: type[Attribute]) -> Callable[..., None] | None:
    # Attributes' classes are abstract ones, with which isinstance is slow to say no.
    return next(
        (print_it for each, print_it in AttributePrinter.printers.items() if issubclass(attribute_class, each)), None
    )


def _escaped(character: re.Match[bytes]) -> bytes:
    return b"\\\\" if character[0] == b"\\" else b"\\%02X" % character[0][0]


def _hexadecimal(attribute: DenseIntOrFPElementsAttr) -> str:
    """The bytes of a constant as MLIR prints them, without quotes."""
    data = attribute.data.data
    element_type = attribute.get_element_type()
    if isinstance(element_type, IntegerType) and element_type.bitwidth < 8:
        mask = (1 << element_type.bitwidth) - 1
        data = data.translate(bytes(byte & mask for byte in range(256)))
    return f"0x{data.hex().upper()}"
