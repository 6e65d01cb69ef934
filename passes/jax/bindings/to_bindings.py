"""Conversion of an xDSL module to jaxlib's MLIR through MLIR's Python bindings, without printing it.

Types and attributes are parsed from text, once each; operations are built through the bindings. This takes less than
half the time of printing and parsing the module.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from jaxlib.mlir import ir
from xdsl.dialects.builtin import (
    CallSiteLoc,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    ModuleOp,
    NameLoc,
    NoneAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sdy.array_types import element_dtype
from sdy.interpreter.values import constant_array
from sdy.ir.locations import FileRange, fused_parts
from sdy.ir.walking import operations_in_block
from sdy.text.large_stack import again_on_large_stack
from sdy.text.printing import Printer


@again_on_large_stack
def module_to_bindings(module: ModuleOp, context: ir.Context) -> ir.Module:
    """Convert `module` to MLIR in `context`. Raises ir.MLIRError if MLIR rejects part of it."""
    with context:
        builder = _Builder()
        new_module = ir.Module.create(builder.location(module.location))
        for name, attribute in (module.properties | module.attributes).items():
            new_module.operation.attributes[name] = builder.attribute(attribute)
        builder.fill(new_module.body, module.body.block)
        new_module.operation.verify()
        return new_module


class _Builder:
    """Builds the operations of one module in the current MLIR context."""

    def __init__(self) -> None:
        self._text_of = Printer(with_aliases=False).text_of
        self._values: dict[SSAValue, ir.Value] = {}
        self._types: dict[int, ir.Type] = {}
        self._attributes: dict[int, ir.Attribute] = {}
        self._locations: dict[int, ir.Location] = {}

    def fill(self, new_block: ir.Block, block: Block) -> None:
        """Append the operations of `block` to `new_block`, whose arguments correspond."""
        self._values.update(zip(block.args, new_block.arguments, strict=True))
        at_end = ir.InsertionPoint(new_block)
        for op in operations_in_block(block):
            self._add(op, at_end)

    def _add(self, op: Operation, at: ir.InsertionPoint) -> None:
        new_op = ir.Operation.create(
            op.name,
            results=[self._type(result.type) for result in op.results],
            operands=[self._values[operand] for operand in op.operands],
            attributes={name: self.attribute(value) for name, value in (op.properties | op.attributes).items()},
            regions=len(op.regions),
            loc=self.location(op.location),
            ip=at,
        )
        self._values.update(zip(op.results, new_op.results, strict=True))
        for region, new_region in zip(op.regions, new_op.regions, strict=True):
            for block in region.blocks:
                types = [self._type(argument.type) for argument in block.args]
                locations = [self.location(argument.location) for argument in block.args]
                self.fill(new_region.blocks.append(*types, arg_locs=locations), block)

    def _type(self, type_: Attribute) -> ir.Type:
        known = self._types.get(id(type_))
        if known is None:
            known = self._types[id(type_)] = ir.Type.parse(self._text_of(type_))
        return known

    def attribute(self, attribute: Attribute) -> ir.Attribute:
        """Convert an attribute."""
        known = self._attributes.get(id(attribute))
        if known is None:
            known = self._attributes[id(attribute)] = self._new_attribute(attribute)
        return known

    def _new_attribute(self, attribute: Attribute) -> ir.Attribute:
        if isinstance(attribute, DenseIntOrFPElementsAttr):
            return self._constant(cast("DenseIntOrFPElementsAttr[Any]", attribute))
        return ir.Attribute.parse(self._text_of(attribute))

    def _constant(self, constant: DenseIntOrFPElementsAttr[Any]) -> ir.Attribute:
        element_type: Attribute = constant.get_element_type()
        dtype = cast("np.dtype[Any]", element_dtype(element_type))
        if isinstance(element_type, ComplexType):  # the bindings cannot parse these, as they have no class for them
            return ir.DenseElementsAttr.get(constant_array(constant, dtype), type=self._type(constant.get_type()))
        return ir.Attribute.parse(self._text_of(constant))

    def location(self, location: Attribute) -> ir.Location:
        """Convert a location."""
        known = self._locations.get(id(location))
        if known is None:
            known = self._locations[id(location)] = _LOCATIONS[type(location)](location, self)
        return known


# Conversions of locations, in the current MLIR context.


def _unknown(_: UnknownLoc, __: _Builder) -> ir.Location:
    return ir.Location.unknown()


def _place(place: FileLineColLoc, _: _Builder) -> ir.Location:
    return ir.Location.file(place.filename.data, place.line.data, place.column.data)


def _named(name: NameLoc, builder: _Builder) -> ir.Location:
    child = None if isinstance(name.location, NoneAttr) else builder.location(name.location)
    return ir.Location.name(name.desc.data, child)


def _call(call: CallSiteLoc, builder: _Builder) -> ir.Location:
    return ir.Location.callsite(builder.location(call.callee), [builder.location(call.caller)])


def _fused(fusion: FusedLoc, builder: _Builder) -> ir.Location:
    parts = fused_parts(fusion)
    if isinstance(fusion.metadata, FileRange):
        start, end = cast(tuple[FileLineColLoc, FileLineColLoc], parts)
        begin, until = (start.line.data, start.column.data), (end.line.data, end.column.data)
        return ir.Location.file(start.filename.data, *begin, *until)
    metadata = None if isinstance(fusion.metadata, NoneAttr) else builder.attribute(fusion.metadata)
    return ir.Location.fused([builder.location(part) for part in parts], metadata)


_LOCATIONS: dict[type[Attribute], Callable[[Any, _Builder], ir.Location]] = {
    CallSiteLoc: _call,
    FileLineColLoc: _place,
    FusedLoc: _fused,
    NameLoc: _named,
    UnknownLoc: _unknown,
}
