"""The printer of operations, byte for byte as MLIR prints.

`Printer` extends xDSL's printer, so that the operations of any dialect print. It differs from xDSL's in the names of
values, the order of dictionaries, numbers and the comments after block labels.
"""

import math
from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from sdy.ir.walking import operations_in_block
from sdy.text.printing.assembly_formats import ASSEMBLY_FORMATS, WITHOUT_ATTRIBUTES
from sdy.text.printing.attribute_printer import INDENT, AttributePrinter
from sdy.text.printing.names import Names, asm_names
from sdy.text.printing.text_cache import TextCache

_UNKNOWN_VALUE = "<<UNKNOWN SSA VALUE>>"


class Printer(AttributePrinter):
    """Printer of operations.

    Args:
        generic: Whether all operations are printed in the generic form.
        debuginfo: Whether locations are printed.
        most_elements: Elide non-splat constants with more elements.
        with_aliases: Whether attributes, types and locations are printed as aliases.
        for_jaxlib: The version of jaxlib whose syntax is printed; by default the installed one.

    Raises:
        ValueError: If the syntax of that version is unknown.
    """

    def __init__(
        self,
        *,
        generic: bool = False,
        debuginfo: bool = False,
        most_elements: float = math.inf,
        with_aliases: bool = False,
        for_jaxlib: str | None = None,
    ):
        super().__init__(
            generic=generic,
            debuginfo=debuginfo,
            most_elements=most_elements,
            with_aliases=with_aliases,
            for_jaxlib=for_jaxlib,
        )
        self._names = Names(generic)
        self._text_cache = TextCache()
        self._named_parts: dict[int, SSAValue] = {}
        self._default_dialects = ["builtin"]
        self._named = False

    # Values and blocks

    def print_ssa_value(self, value: SSAValue) -> str:
        """Print the name of a value at a use; return it without `%`."""
        name = self._names.values.get(value, _UNKNOWN_VALUE)
        self._named_parts[len(self._parts)] = value
        self._parts.append(f"%{name}" if name is not _UNKNOWN_VALUE else name)
        return name

    def print_operand(self, operand: SSAValue) -> None:
        """Print the name of a value at a use."""
        self.print_ssa_value(operand)

    def print_operands(self, operands: Iterable[SSAValue]) -> None:
        """Print the names of values in parentheses."""
        with self.in_parens():
            self.print_list(operands, self.print_ssa_value)

    def print_block_name(self, block: Block) -> str:
        """Print a block's label; return it without `^`."""
        name = self._names.blocks.get(block, "<<UNKNOWN BLOCK>>")
        self._parts.append(f"^{name}")
        return name

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        """Print a block argument with its type and, with `debuginfo`, its location."""
        self.print_ssa_value(arg)
        if print_type:
            self.print_string(": ")
            self.print_attribute(arg.type)
            if self.print_debuginfo:
                self.print_block_argument_location(arg)

    # Regions

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        """Print a region; the entry block has a label if its arguments are printed or it is empty."""
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
        self.print_new_line()
        self.print_string("}")
        self._default_dialects.pop()

    def print_block(self, block: Block, print_block_args: bool = True, print_block_terminator: bool = True) -> None:
        """Print a block's operations, below its label if `print_block_args`."""
        if print_block_args:
            self.print_new_line()
            self.print_block_name(block)
            if block.args:
                with self.in_parens():
                    self.print_list(block.args, self.print_block_argument)
            self.print_string(":")
            self._print_predecessors(block)
        self.indentation += 1
        line_start = "\n" + INDENT * self.indentation
        last = block.last_op
        for op in operations_in_block(block):
            if op is last and not print_block_terminator and op.has_trait(IsTerminator, value_if_unregistered=False):
                break
            self._parts.append(line_start)
            self.print_op(op)
        self.indentation -= 1

    def _print_predecessors(self, block: Block) -> None:
        if block.parent is None or block is block.parent.first_block:
            return
        predecessors = sorted((self._names.blocks[b] for b in block.predecessors()), key=lambda name: int(name[2:]))
        match predecessors:
            case []:
                self.print_string("  // no predecessors")
            case [one]:
                self.print_string(f"  // pred: ^{one}")
            case many:
                self.print_string(f"  // {len(many)} preds: {', '.join('^' + name for name in many)}")

    # Operations

    def print_op(self, op: Operation) -> None:
        """Print an operation with its results, in its assembly format or the generic form."""
        if not self._named:
            self._named = True
            self._names.add(op)
        if self.print_debuginfo:
            self.aliases.visit(op.location, deferred=True)
        if op.results:
            self._parts.append(f"{self._names.results[op]} = ")
        if op.regions or op.successors:
            self._print_uncached(op)
        else:
            self._print_cached(op)
        if self.print_debuginfo:
            self.print_string(f" loc({self._location_part(op.location)})")

    def _print_cached(self, op: Operation) -> None:
        """Print the text after the results, from the cache if an equal operation has been printed."""
        key = self._text_cache.key(op, self._default_dialects[-1])
        text = self._text_cache.find(key, op, self._names.values)
        if text is not None:
            self._parts.append(text)
            return
        self._parts, before = [], self._parts
        self._named_parts = {}
        self._print_uncached(op)
        self._text_cache.add(key, op, self._parts, self._named_parts)
        before += self._parts
        self._parts = before

    def _print_uncached(self, op: Operation) -> None:
        """Print the text after the results."""
        assembly_format = ASSEMBLY_FORMATS.get(type(op))
        is_lossy = op.attributes and op.name in WITHOUT_ATTRIBUTES
        custom = assembly_format is not None or (type(op).print is not Operation.print and not is_lossy)
        if self.print_generic_format or not custom:
            self._print_generic_op(op, assembly_format.inherent if assembly_format is not None else ())
        else:
            self.print_string(op.name.removeprefix(self._default_dialects[-1] + "."))
            if assembly_format is None:
                op.print(self)
            else:
                assembly_format.print(op, self)

    def _print_generic_op(self, op: Operation, inherent: tuple[str, ...]) -> None:
        name, hidden = op.name, ()
        if isinstance(op, UnregisteredOp):
            name, hidden = op.op_name.data, ("op_name__",)
        self._parts.append(f'"{name}"')
        self._print_generic_body(op, hidden, inherent)

    def print_op_with_default_format(self, op: Operation) -> None:
        """Print the text after the name of an operation in the generic form."""
        self._print_generic_body(op)

    def _print_generic_body(self, op: Operation, hidden: tuple[str, ...] = (), inherent: tuple[str, ...] = ()) -> None:
        operands = [*op.operands]
        self.print_operands(operands)
        if op.successors:
            with self.in_square_brackets():
                self.print_list(op.successors, self.print_block_name)
        properties = op.properties
        if unknown := self.syntax.unknown_properties.get(op.name):
            properties = {name: value for name, value in properties.items() if (name, value) != unknown}
        if inherent:
            properties = properties | {key: op.attributes[key] for key in inherent if key in op.attributes}
        # MLIR numbers aliases as if regions and types came first, then all attributes sorted by name.
        place_of_properties = len(self._parts)
        self._parts.append("")
        if op.regions:
            self.print_regions(op.regions)
        operation_type = self._function_type_text(
            [operand.type for operand in operands], [result.type for result in op.results]
        )
        if properties and op.attributes:
            self._visit_by_name(properties | op.attributes)
        if properties:
            self._parts[place_of_properties] = f" <{self._captured(self.print_attr_dict, properties)}>"
        if op.attributes:
            self.print_op_attributes(op.attributes, reserved_attr_names=(*hidden, *inherent))
        self._parts.append(f" : {operation_type}")

    def _visit_by_name(self, attributes: Mapping[str, Attribute]) -> None:
        known = self._attribute_texts
        if any(id(attribute) not in known for attribute in attributes.values()):
            for name in sorted(attributes):
                self.aliases.visit(attributes[name])

    def print_operation_type(self, op: Operation) -> None:
        """Print the function type of an operation's operands and results."""
        self.print_function_type(op.operand_types, op.result_types)
