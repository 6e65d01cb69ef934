"""xDSL operations -> MLIR text, byte for byte what MLIR prints.

`Printer` is xDSL's, so that the operations of any dialect print. It differs where MLIR does: in the names of values,
in the order of dictionaries, in numbers, in what follows a block's label; and it writes to a list in memory.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float64Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    LocationAttr,
    UnitAttr,
    UnregisteredOp,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.printer import Printer as XDSLPrinter
from xdsl.traits import IsTerminator

from sdy.text.aliases import LocationAliases
from sdy.text.dense import MOST_LISTED_ELEMENTS, hexadecimal, is_repeated
from sdy.text.floats import float_text
from sdy.text.names import Names, asm_names
from sdy.text.spelling import SPELLINGS

T = TypeVar("T")

_INDENT = "  "
_NOT_PLAIN = re.compile(rb'[^\x20-\x7e]|["\\]')
_UNKNOWN_VALUE = "<<UNKNOWN SSA VALUE>>"


class Printer(XDSLPrinter):
    """Collects the text of what it prints; `text()` is all of it."""

    def __init__(self, *, generic: bool = False, locations: LocationAliases | None = None):
        super().__init__(print_generic_format=generic, print_debuginfo=locations is not None)
        self._locations = locations or LocationAliases()
        self._parts: list[str] = []
        self._names = Names(generic)
        self._attribute_texts: dict[int, tuple[Attribute, str]] = {}
        self._key_texts: dict[str, str] = {}
        self._default_dialects = ["builtin"]
        self._named = False

    def text(self) -> str:
        """Everything printed so far, and a newline, among the definitions of the aliases that it uses."""
        before, after = (self._locations.definitions(deferred=deferred) for deferred in (False, True))
        return f"{before}{''.join(self._parts)}\n{after}"

    # Text

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Add text; its lines are indented as what is around them, or by `indent` steps."""
        if "\n" in text:
            text = text.replace("\n", "\n" + _INDENT * (self._indent if indent is None else indent))
        self._parts.append(text)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self._parts.append("\n" + _INDENT * (self._indent if indent is None else indent))

    def print_bytes_literal(self, bytestring: bytes) -> None:
        """A string with what is not plain ASCII escaped as MLIR does."""
        escaped = _NOT_PLAIN.sub(lambda m: b"\\\\" if m[0] == b"\\" else b"\\%02X" % m[0][0], bytestring)
        self._parts.append(f'"{escaped.decode()}"')

    def print_float(self, value: float, type: AnyFloat) -> None:  # noqa: A002
        """A number in MLIR's spelling, without its type."""
        self._parts.append(float_text(value, math.copysign(1.0, value) < 0, type))

    # Attributes

    def print_attribute(self, attribute: Attribute) -> None:
        """An attribute or a type; its text is made once for each object."""
        known = self._attribute_texts.get(id(attribute))
        if known is not None:
            self._parts.append(known[1])
            return
        if isinstance(attribute, LocationAttr):
            self.print_string(f"loc({self._locations.reference(attribute)})")
            return
        start = len(self._parts)
        match attribute:
            case ArrayAttr():
                with self.in_square_brackets():
                    self.print_list(attribute.data, self._print_element)
            case DenseIntOrFPElementsAttr():
                self._print_dense(attribute)
            case _:
                super().print_attribute(attribute)
        text = "".join(self._parts[start:])
        if "\n" not in text:
            self._parts[start:] = [text]
            self._attribute_texts[id(attribute)] = (attribute, text)

    def _print_element(self, attribute: Attribute) -> None:
        """An element of an array, where the types i64 and f64 go without saying."""
        match attribute:
            case IntegerAttr() if attribute.type == i64:
                self.print_int(attribute.value.data)
            case FloatAttr() if isinstance(attribute.type, Float64Type):
                self.print_float(attribute.value.data, attribute.type)
            case _:
                self.print_attribute(attribute)

    def _print_dense(self, attribute: DenseIntOrFPElementsAttr) -> None:
        data = attribute.data.data
        element = data[: attribute.get_element_type().compile_time_size]
        if not data or is_repeated(element, data):
            DenseIntOrFPElementsAttr(attribute.type, BytesAttr(element)).print_builtin(self)
            return
        self.print_string("dense<")
        if len(attribute) <= MOST_LISTED_ELEMENTS:
            # xDSL's `print_builtin` takes 0.0 and -0.0 for the same.
            attribute._print_dense_list(attribute.get_values(), attribute.get_shape(), self)  # pyright: ignore[reportPrivateUsage]
        else:
            self.print_string(f'"{hexadecimal(attribute)}"')
        self.print_string("> : ")
        self.print_attribute(attribute.get_type())

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        """A dictionary, in the order of its keys."""
        entries = [
            self._key_text(key) if isinstance(value, UnitAttr) else f"{self._key_text(key)} = {self._text_of(value)}"
            for key, value in sorted(attr_dict.items())
        ]
        self._parts.append(f"{{{', '.join(entries)}}}")

    def print_function_type(self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]) -> None:
        """`(f32, f32) -> f32`: a single output has no parentheses, unless it is a function type itself."""
        inputs, outputs = ", ".join(map(self._text_of, input_types)), [*output_types]
        results = ", ".join(map(self._text_of, outputs))
        if len(outputs) != 1 or isinstance(outputs[0], FunctionType):
            results = f"({results})"
        self._parts.append(f"({inputs}) -> {results}")

    def _text_of(self, attribute: Attribute) -> str:
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

    # Values and blocks

    def print_ssa_value(self, value: SSAValue) -> str:
        """The name by which a value is used. Returns it without `%`."""
        name = self._names.values.get(value, _UNKNOWN_VALUE)
        self._parts.append(f"%{name}" if name is not _UNKNOWN_VALUE else name)
        return name

    def print_operand(self, operand: SSAValue) -> None:
        """The name by which a value is used."""
        self.print_ssa_value(operand)

    def print_operands(self, operands: Iterable[SSAValue]) -> None:
        """The names by which values are used, in parentheses."""
        names = self._names.values
        known = [f"%{names[operand]}" if operand in names else _UNKNOWN_VALUE for operand in operands]
        self._parts.append(f"({', '.join(known)})")

    def print_block_name(self, block: Block) -> str:
        """A block's label. Returns it without `^`."""
        name = self._names.blocks.get(block, "<<UNKNOWN BLOCK>>")
        self._parts.append(f"^{name}")
        return name

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        """A block argument, with its type and, where asked for, its location."""
        self.print_ssa_value(arg)
        if print_type:
            self.print_string(": ")
            self.print_attribute(arg.type)
            if self.print_debuginfo:
                self.print_block_argument_location(arg)

    def print_block_argument_location(self, argument: BlockArgument) -> None:
        """` loc(...)`: unlike an operation's, never an alias."""
        self._locations.meet(argument.location, deferred=False)
        self.print_string(f" loc({self._locations.spelled(argument.location)})")

    # Regions

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        """`{ ... }`; the entry block has a label when its arguments are to be printed or it would vanish otherwise."""
        parent = region.parent
        self._default_dialects.append(asm_names(type(parent)).default_dialect if parent else "")
        self.print_string("{")
        entry = region.blocks.first
        for block in region.blocks:
            labelled = (
                (print_entry_block_args and bool(block.args)) or (print_empty_block and not block.ops)
                if block is entry
                else True
            )
            self.print_block(block, labelled, print_block_terminators)
        self._print_new_line()
        self.print_string("}")
        self._default_dialects.pop()

    def print_block(self, block: Block, print_block_args: bool = True, print_block_terminator: bool = True) -> None:
        """A block's operations, below its label if `print_block_args`."""
        if print_block_args:
            self._print_new_line()
            self.print_block_name(block)
            if block.args:
                with self.in_parens():
                    self.print_list(block.args, self.print_block_argument)
            self.print_string(":")
            self._print_predecessors(block)
        self._indent += 1
        line_start = "\n" + _INDENT * self._indent
        last = block.last_op
        for op in block.ops:
            if op is last and not print_block_terminator and op.has_trait(IsTerminator, value_if_unregistered=False):
                break
            self._parts.append(line_start)
            self.print_op(op)
        self._indent -= 1

    def _print_predecessors(self, block: Block) -> None:
        if block.parent is None or block is block.parent.first_block:
            return
        predecessors = sorted({self._names.blocks[b] for b in block.predecessors()}, key=lambda name: int(name[2:]))
        match predecessors:
            case []:
                self.print_string("  // no predecessors")
            case [one]:
                self.print_string(f"  // pred: ^{one}")
            case many:
                self.print_string(f"  // {len(many)} preds: {', '.join('^' + name for name in many)}")

    # Operations

    def print_op(self, op: Operation) -> None:
        """An operation with its results, in its own form or the generic one."""
        if not self._named:
            self._named = True
            self._names.add(op)
        if self.print_debuginfo:
            self._locations.meet(op.location, deferred=True)
        if op.results:
            self._parts.append(f"{self._names.results[op]} = ")
        spelling = SPELLINGS.get(type(op))
        custom = spelling is not None or type(op).print is not Operation.print
        if self.print_generic_format or not custom:
            self._print_generic_op(op, spelling.inherent if spelling is not None else ())
        else:
            self.print_string(op.name.removeprefix(self._default_dialects[-1] + "."))
            if spelling is None:
                op.print(self)
            else:
                spelling.print(op, self)
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)

    def _print_generic_op(self, op: Operation, inherent: tuple[str, ...]) -> None:
        name, hidden = op.name, ()
        if isinstance(op, UnregisteredOp):
            name, hidden = op.op_name.data, ("op_name__",)
        self._parts.append(f'"{name}"')
        self._print_generic_body(op, hidden, inherent)

    def print_op_with_default_format(self, op: Operation) -> None:
        """What follows the name of an operation in the generic form."""
        self._print_generic_body(op)

    def _print_generic_body(self, op: Operation, hidden: tuple[str, ...] = (), inherent: tuple[str, ...] = ()) -> None:
        self.print_operands(op.operands)
        if op.successors:
            with self.in_square_brackets():
                self.print_list(op.successors, self.print_block_name)
        properties = op.properties
        if inherent:
            properties = properties | {key: op.attributes[key] for key in inherent if key in op.attributes}
        if properties:
            self._parts.append(" <")
            self.print_attr_dict(properties)
            self._parts.append(">")
        if op.regions:
            self.print_regions(op.regions)
        if op.attributes:
            self.print_op_attributes(op.attributes, reserved_attr_names=(*hidden, *inherent))
        self._parts.append(" : ")
        self.print_operation_type(op)

    def print_operation_type(self, op: Operation) -> None:
        """An operation's type: those of its operands and results."""
        self.print_function_type(op.operand_types, op.result_types)
