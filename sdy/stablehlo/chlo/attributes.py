"""The attributes of CHLO's operations."""

from dataclasses import dataclass

from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition

from sdy.stablehlo.attributes.enums import ComparisonDirection, ComparisonType, Precision
from sdy.stablehlo.attributes.struct_attribute import StructAttr


@irdl_attr_definition
class PrecisionAttr(EnumAttribute[Precision], SpacedOpaqueSyntaxAttribute):
    """The precision of an operand of a product, `#chlo<precision DEFAULT>`."""

    name = "chlo.precision"


@irdl_attr_definition
class ComparisonDirectionAttr(EnumAttribute[ComparisonDirection], SpacedOpaqueSyntaxAttribute):
    """The relation that a comparison tests, `#chlo<comparison_direction LT>`."""

    name = "chlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(EnumAttribute[ComparisonType], SpacedOpaqueSyntaxAttribute):
    """The interpretation of compared elements, `#chlo<comparison_type FLOAT>`."""

    name = "chlo.comparison_type"


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimension numbers of a dot product, and its ragged and group dimensions."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()
    lhs_ragged_dimensions: tuple[int, ...] = ()
    rhs_group_dimensions: tuple[int, ...] = ()


def outer_dims(numbers: RaggedDotDimensionNumbers) -> list[int]:
    """Return the dimensions of lhs that can have group sizes of their own: those before the ragged one."""
    batching, contracting = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    (ragged,) = numbers.lhs_ragged_dimensions
    if ragged in batching:
        return list(batching[: batching.index(ragged)])
    if ragged in contracting:
        return [*batching, *contracting[: contracting.index(ragged)]]
    return [*batching, *(dim for dim in range(ragged) if dim not in batching + contracting)]


@irdl_attr_definition
class RaggedDotDimensionNumbersAttr(StructAttr[RaggedDotDimensionNumbers]):
    """The dimension numbers of a ragged dot product, `#chlo.ragged_dot<lhs_contracting_dimensions = [1], ...>`."""

    name = "chlo.ragged_dot"
    STRUCT = RaggedDotDimensionNumbers
