"""Conversion of a module of jaxlib's MLIR to xDSL through MLIR's Python bindings, without printing it.

Printing and parsing the module takes three times as long. Types, attributes and locations, which the bindings expose
only as text, are parsed once each; types and attributes are memoized across modules.
"""

import re

from jaxlib.mlir import ir
from xdsl.dialects.builtin import LocationAttr, ModuleOp, NoneAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import ParseError

from sdy import gc_control
from sdy.diagnostics import DiagnosticError
from sdy.ir.building import append, make
from sdy.ir.locations import call_site, file_range, named
from sdy.text import Parser, context, parse_verified
from sdy.text.large_stack import again_on_large_stack
from sdy.text.reading.generic_form import normalize, split_inherent

_MOST = 2**14
"""The capacity of `_known`, which is cleared when full to bound the memory of long-lived processes."""

_MOST_CHARACTERS = 256
"""The maximal length of a memoized text: longer constants seldom recur."""

_known: dict[str, Attribute] = {}
"""Parsed types and attributes, keyed by their text."""

_WORDS = r'"([^"\\\n]*+)"'
_PLACE = r":(\d{1,9}):(\d{1,9})(?: to (\d{1,9})?:(\d{1,9}))?"
_NAMED = re.compile(rf"{_WORDS}\((.*)\)")
_CALLED = re.compile(rf"callsite\((?P<callee>{_WORDS}(?:\({_WORDS}{_PLACE}\))?) at (?P<caller>.*)\)")
_FIRST = re.compile(rf"{_WORDS}(?:{_PLACE})?")


@again_on_large_stack
def module_from_bindings(module: ir.Module) -> ModuleOp:
    """Convert `module` to xDSL. Raises DiagnosticError if it contains something unknown."""
    gc_control.collect_if_grown()
    try:
        with gc_control.paused():
            read = _Reader().operation(module.operation)
            assert isinstance(read, ModuleOp)
            return read
    except (_InTextOnlyError, ParseError, DiagnosticError):
        return parse_verified(str(module.operation.get_asm(enable_debug_info=True)), "<jax>")


class _InTextOnlyError(Exception):
    """The module contains a rare construct that only the text parser supports."""


class _Reader:
    """Converts the operations of one module."""

    def __init__(self) -> None:
        self._context = context()
        self._classes: dict[str, type[Operation]] = {}
        self._values: dict[ir.Value, SSAValue] = {}
        self._attributes: dict[ir.Attribute | ir.Type, Attribute] = {}
        self._locations: dict[str, LocationAttr] = {}
        self._location_of: dict[ir.Attribute, LocationAttr] = {}

    def operation(self, op: ir.Operation) -> Operation:
        """Convert an operation with its regions, detached."""
        op_class = self._class_of(op.name)
        if len(op.successors):
            raise _InTextOnlyError
        properties, attributes = split_inherent(op_class, self._attributes_of(op))
        results = op.results
        new_op = make(
            op_class,
            [self._values[operand] for operand in op.operands],
            [self._attribute(result.type) for result in results],
            properties,
            attributes,
            [self._region(region) for region in op.regions],
            self._location(op.location),
        )
        normalize(new_op)
        self._values.update(zip(results, new_op.results, strict=True))
        return new_op

    def _attributes_of(self, op: ir.Operation) -> dict[str, Attribute]:
        attributes = op.attributes
        try:
            return {name: self._attribute(attribute) for name, attribute in attributes.items()}
        except TypeError:  # the bindings have no class for complex constants, but print them
            texts = {name: str(attributes[place]) for place, name in enumerate(attributes)}
            return {
                name: self._read(text.removeprefix(f"NamedAttribute({name}=").removesuffix(")"))
                for name, text in texts.items()
            }

    def _class_of(self, name: str) -> type[Operation]:
        op_class = self._classes.get(name)
        if op_class is None:
            op_class = self._context.get_optional_op(name)
            if op_class is None:
                raise _InTextOnlyError
            self._classes[name] = op_class
        return op_class

    def _region(self, region: ir.Region) -> Region:
        return Region([self._block(block) for block in region.blocks])

    def _block(self, block: ir.Block) -> Block:
        arguments = block.arguments
        read = Block(arg_types=[self._attribute(argument.type) for argument in arguments])
        for argument, new in zip(arguments, read.args, strict=True):
            new.location = self._location(argument.location)
            self._values[argument] = new
        for op in block.operations:
            append(read, self.operation(op.operation))
        return read

    def _attribute(self, attribute: ir.Attribute | ir.Type) -> Attribute:
        known = self._attributes.get(attribute)
        if known is None:
            known = self._attributes[attribute] = self._read(str(attribute))
        return known

    def _read(self, text: str) -> Attribute:
        known = _known.get(text)
        if known is not None:
            return known
        if "dense_resource<" in text:
            raise _InTextOnlyError
        read = Parser(self._context, text, "<jax>").parse_attribute()
        if len(text) <= _MOST_CHARACTERS:
            if len(_known) >= _MOST:
                _known.clear()
            _known[text] = read
        return read

    def _location(self, location: ir.Location) -> LocationAttr:
        attribute = location.attr
        known = self._location_of.get(attribute)
        if known is None:
            text = str(attribute)[len("loc(") : -len(")")]
            known = self._location_of[attribute] = self._located(text)
        return known

    def _located(self, text: str) -> LocationAttr:
        """Parse a location. Locations are memoized because most share their outermost callers."""
        known = self._locations.get(text)
        if known is None:
            known = self._locations[text] = self._new_location(text)
        return known

    def _new_location(self, text: str) -> LocationAttr:
        if called := _CALLED.fullmatch(text):
            return call_site(self._located(called["callee"]), self._located(called["caller"]))
        if first := _FIRST.fullmatch(text):
            name, line, column, end_line, end_column = first.groups()
            if line is None:
                return named(name, NoneAttr())
            return file_range(name, int(line), int(column), int(end_line or line), int(end_column or column))
        if inner := _NAMED.fullmatch(text):
            return named(inner[1], self._located(inner[2]))
        return Parser(self._context, text, "<jax>").parse_location()
