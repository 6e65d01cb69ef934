"""The elements of constants in memory: all of them, one for all, or those at some places.

Where one value stands for more elements than MLIR would list, it is kept once, whatever the shape:
`DenseIntOrFPElementsAttr` then has the bytes of one element.
"""

import math
from typing import Any, cast

from xdsl.dialects.builtin import AnyDenseElement, BytesAttr, DenseIntOrFPElementsAttr, RankedStructure
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.printer import Printer
from xdsl.traits import ConstantLike
from xdsl.utils.hints import isa

DenseType = RankedStructure[AnyDenseElement]

MOST_LISTED_ELEMENTS = 100
"""Up to this many elements MLIR prints a constant as a list, beyond it as bytes in hexadecimal."""


def dense(dense_type: DenseType, data: bytes) -> DenseIntOrFPElementsAttr:
    """A constant of the elements whose bytes are given, or with the bytes of one element for all."""
    count = math.prod(dense_type.get_shape())
    element = data[: dense_type.element_type.compile_time_size]
    if is_repeated(element, data):
        # MLIR knows the one value of a tensor without elements, too.
        data = element * count if 0 < count <= MOST_LISTED_ELEMENTS else element
    return DenseIntOrFPElementsAttr(cast(Any, dense_type), BytesAttr(data))


def is_repeated(element: bytes, data: bytes) -> bool:
    """Whether `data` is `element` again and again, at least once."""
    return bool(data) and data.startswith(element) and data[len(element) :] == data[: -len(element)]


def is_splat(attribute: DenseIntOrFPElementsAttr) -> bool:
    """Whether there are elements, and all are the same."""
    data = attribute.data.data
    return is_repeated(data[: attribute.get_element_type().compile_time_size], data)


def splat(value: Attribute) -> DenseIntOrFPElementsAttr | None:
    """The value of a constant, if it has elements and all of them are equal."""
    return value if isa(value, DenseIntOrFPElementsAttr) and is_splat(value) else None


def folded_elements(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """The elements that a constant which may be folded gives a tensor, None where none does."""
    constant = ConstantLike.get_constant_value(value)
    return constant if isa(constant, DenseIntOrFPElementsAttr) else None


@irdl_attr_definition
class SparseElementsAttr(ParametrizedAttribute, BuiltinAttribute):
    """`indices` has a row for each place, as long as `type` has dimensions; `values` an element for each."""

    name = "builtin.sparse_elements"
    indices: DenseIntOrFPElementsAttr = param_def()
    values: DenseIntOrFPElementsAttr = param_def()
    type: Attribute = param_def()

    def print_builtin(self, printer: Printer) -> None:
        """Write it whole, with numbers as xDSL prints them."""
        printer.print_string("sparse<")
        if len(self.values):
            for separator, part in (("", self.indices), (", ", self.values)):
                printer.print_string(separator)
                part.print_without_type(printer)
        printer.print_string("> : ")
        printer.print_attribute(self.type)
