"""CHLO's elementwise operations with implicit broadcasting."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ComplexType, i1
from xdsl.ir import Attribute, Operation
from xdsl.irdl import ParsePropInAttrDict, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo.attributes.operation_attributes import I64_ARRAY
from sdy.stablehlo.checks.agreement import element_type, verify_compatible_elements, verify_same_elements
from sdy.stablehlo.checks.broadcast_shapes import broadcast_along, numpy_broadcast
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred, verify_inferred_shapes
from sdy.stablehlo.checks.shape_checks import compatible_elements
from sdy.stablehlo.chlo.attributes import ComparisonDirectionAttr, ComparisonTypeAttr
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.element_types import BITS, BOOLEANS, COMPLEX, FLOATS
from sdy.stablehlo.types.tensor_types import ANY_TENSOR, PREDICATE, any_rank


class BroadcastBinaryOp(InferredResults):
    """Base of binary operations whose operands are broadcast by NumPy's rules or along broadcast_dimensions."""

    VERIFY_ELEMENTS: ClassVar[Callable[[Operation], None] | None] = None
    """The check of the element types of operands and result."""

    lhs = operand_def(ANY_TENSOR)
    rhs = operand_def(ANY_TENSOR)
    broadcast_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(ANY_TENSOR)
    traits = traits_def(Elementwise(), Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)"

    def verify_(self) -> None:
        """Verify the element types and the result type."""
        verify_elements = type(self).VERIFY_ELEMENTS
        if verify_elements is not None:
            verify_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the broadcast type of the operands, unranked if they are incompatible."""
        if not compatible_elements(element_type(self.lhs), element_type(self.rhs)):
            raise VerifyException("mismatched operand types")
        element = self.result_element(element_type(self.lhs))
        operands = (self.lhs.type, self.rhs.type)
        if self.broadcast_dimensions is None:
            return [numpy_broadcast(operands, element)]
        return [broadcast_along(operands, self.broadcast_dimensions.get_values(), element)]

    def result_element(self, element: Attribute) -> Attribute:
        """Return the result's element type from the operands'."""
        return element


class BitwiseOp(BroadcastBinaryOp):
    """Base of logical and bitwise operations."""

    lhs = operand_def(any_rank(BITS))
    rhs = operand_def(any_rank(BITS))


class CompatibleOp(BroadcastBinaryOp):
    """Base of operations with compatible element types: quantized ones may differ in scales."""

    VERIFY_ELEMENTS = verify_compatible_elements


class SameElementsOp(BroadcastBinaryOp):
    """Base of operations with equal element types."""

    VERIFY_ELEMENTS = verify_same_elements


@define
class BroadcastAddOp(CompatibleOp):
    """lhs + rhs."""

    name = "chlo.broadcast_add"


@define
class BroadcastAndOp(BitwiseOp):
    """Logical or bitwise and."""

    name = "chlo.broadcast_and"


@define
class BroadcastAtan2Op(SameElementsOp):
    """The angle of the point (rhs, lhs)."""

    name = "chlo.broadcast_atan2"


@define
class BroadcastComplexOp(BroadcastBinaryOp):
    """Complex numbers from real and imaginary parts."""

    name = "chlo.broadcast_complex"
    lhs = operand_def(any_rank(FLOATS))
    rhs = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(COMPLEX))

    def result_element(self, element: Attribute) -> Attribute:
        """Return the complex type of the parts."""
        return ComplexType(element)  # pyright: ignore[reportArgumentType]


@define
class BroadcastDivOp(SameElementsOp):
    """lhs / rhs."""

    name = "chlo.broadcast_divide"


@define
class BroadcastMaxOp(CompatibleOp):
    """The larger element."""

    name = "chlo.broadcast_maximum"


@define
class BroadcastMinOp(CompatibleOp):
    """The smaller element."""

    name = "chlo.broadcast_minimum"


@define
class BroadcastMulOp(SameElementsOp):
    """lhs * rhs."""

    name = "chlo.broadcast_multiply"


@define
class BroadcastNextAfterOp(SameElementsOp):
    """The next number after lhs towards rhs."""

    name = "chlo.broadcast_next_after"


@define
class BroadcastOrOp(BitwiseOp):
    """Logical or bitwise or."""

    name = "chlo.broadcast_or"


@define
class BroadcastPolygammaOp(SameElementsOp):
    """The lhs-th derivative of digamma."""

    name = "chlo.broadcast_polygamma"


@define
class BroadcastPowOp(SameElementsOp):
    """lhs to the power of rhs."""

    name = "chlo.broadcast_power"


@define
class BroadcastRemOp(SameElementsOp):
    """The remainder of the division."""

    name = "chlo.broadcast_remainder"


@define
class BroadcastShiftLeftOp(SameElementsOp):
    """lhs shifted left."""

    name = "chlo.broadcast_shift_left"


@define
class BroadcastShiftRightArithmeticOp(SameElementsOp):
    """lhs shifted right, the sign bit filling."""

    name = "chlo.broadcast_shift_right_arithmetic"


@define
class BroadcastShiftRightLogicalOp(SameElementsOp):
    """lhs shifted right, zeros filling."""

    name = "chlo.broadcast_shift_right_logical"


@define
class BroadcastSubOp(SameElementsOp):
    """lhs - rhs."""

    name = "chlo.broadcast_subtract"


@define
class BroadcastXorOp(BitwiseOp):
    """Logical or bitwise exclusive or."""

    name = "chlo.broadcast_xor"


@define
class BroadcastZetaOp(SameElementsOp):
    """The Hurwitz zeta function."""

    name = "chlo.broadcast_zeta"
    lhs = operand_def(any_rank(FLOATS))
    rhs = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(FLOATS))


@define
class BroadcastCompareOp(BroadcastBinaryOp):
    """Compare lhs and rhs elementwise."""

    name = "chlo.broadcast_compare"
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(any_rank(BOOLEANS))

    def result_element(self, element: Attribute) -> Attribute:
        """Return the boolean type."""
        return i1


@define
class BroadcastSelectOp(InferredResults):
    """Elements of on_true where pred is true and of on_false elsewhere."""

    name = "chlo.broadcast_select"
    pred = operand_def(PREDICATE)
    on_true = operand_def(ANY_TENSOR)
    on_false = operand_def(ANY_TENSOR)
    result = result_def(ANY_TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$pred `,` $on_true `,` $on_false attr-dict"
        " `:` `(` type($pred) `,` type($on_true) `,` type($on_false) `)` `->` type($result)"
    )

    def verify_(self) -> None:
        """Verify the result's shape."""
        verify_inferred_shapes(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the broadcast type of the operands."""
        element = element_type(self.on_true)
        if element != element_type(self.on_false):
            raise VerifyException("mismatched operand types")
        return [numpy_broadcast(self.operand_types, element)]
