"""Elements of constants, dense, splat or sparse, and strings with a type.

A splat with more elements than MLIR would print as a list is stored once, whatever the shape: the data of its
`DenseIntOrFPElementsAttr` are the bytes of one element.
"""

import math
from typing import Any, cast

from xdsl.dialects.builtin import AnyDenseElement, BytesAttr, DenseIntOrFPElementsAttr, RankedStructure, StringAttr
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.printer import Printer
from xdsl.traits import ConstantLike
from xdsl.utils.hints import isa

DenseType = RankedStructure[AnyDenseElement]

MOST_LISTED_ELEMENTS = 100
"""Maximal number of elements of a constant that MLIR prints as a list; it prints larger ones as hexadecimal bytes."""

_BEGINNING = 64
"""The number of elements that are compared first."""


def dense(dense_type: DenseType, data: bytes) -> DenseIntOrFPElementsAttr:
    """Return a constant of `data`, the bytes of all elements or of one element of a splat."""
    count = math.prod(dense_type.get_shape())
    element = data[: dense_type.element_type.compile_time_size]
    if is_repeated(element, data):
        # MLIR keeps the value of a splat without elements, too.
        data = element * count if 0 < count <= MOST_LISTED_ELEMENTS else element
    return DenseIntOrFPElementsAttr(cast(Any, dense_type), BytesAttr(data))


def is_repeated(element: bytes, data: bytes) -> bool:
    """Return whether `data` is `element` repeated at least once."""
    # Few constants have a beginning that is repeated: only those are compared as a whole, which copies them.
    beginning = data[: _BEGINNING * len(element)]
    return bool(data) and all(part[len(element) :] == part[: -len(element)] for part in (beginning, data))


def is_splat(attribute: DenseIntOrFPElementsAttr) -> bool:
    """Return whether the constant has elements and all are equal."""
    data = attribute.data.data
    return is_repeated(data[: attribute.get_element_type().compile_time_size], data)


def splat(value: Attribute) -> DenseIntOrFPElementsAttr | None:
    """Return the value of a constant if it is a splat."""
    return value if isa(value, DenseIntOrFPElementsAttr) and is_splat(value) else None


def folded_elements(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """Return the elements of the constant that defines `value`; None if no constant does."""
    constant = ConstantLike.get_constant_value(value)
    return constant if isa(constant, DenseIntOrFPElementsAttr) else None


@irdl_attr_definition
class TypedStringAttr(ParametrizedAttribute, BuiltinAttribute):
    """A string with a type other than `none`: `"value" : i64`."""

    name = "builtin.typed_string"
    value: StringAttr = param_def()
    type: Attribute = param_def()

    def print_builtin(self, printer: Printer) -> None:
        """Print the string and its type."""
        printer.print_attribute(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.type)


@irdl_attr_definition
class SparseElementsAttr(ParametrizedAttribute, BuiltinAttribute):
    """A sparse constant: row i of `indices` is the index of element i of `values`; all others are zero."""

    name = "builtin.sparse_elements"
    indices: DenseIntOrFPElementsAttr = param_def()
    values: DenseIntOrFPElementsAttr = param_def()
    type: Attribute = param_def()

    def print_builtin(self, printer: Printer) -> None:
        """Print in full, with numbers in xDSL's format."""
        printer.print_string("sparse<")
        if len(self.values):
            for separator, part in (("", self.indices), (", ", self.values)):
                printer.print_string(separator)
                part.print_without_type(printer)
        printer.print_string("> : ")
        printer.print_attribute(self.type)
