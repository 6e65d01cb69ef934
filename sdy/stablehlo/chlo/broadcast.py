"""CHLO's elementwise operations that broadcast their operands first, as numpy does or along given dimensions."""

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
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred
from sdy.stablehlo.checks.ranks import verify_inferred_shapes
from sdy.stablehlo.checks.shape_checks import compatible_elements
from sdy.stablehlo.chlo.attributes import ComparisonDirectionAttr, ComparisonTypeAttr
from sdy.stablehlo.definition import define
from sdy.stablehlo.types.element_types import BITS, BOOLEANS, COMPLEX, FLOATS
from sdy.stablehlo.types.tensor_types import ANY_TENSOR, PREDICATE, any_rank


class BroadcastBinaryOp(InferredResults):
    """Two operands, broadcast to the result's shape as numpy does or as broadcast_dimensions says."""

    VERIFY_ELEMENTS: ClassVar[Callable[[Operation], None] | None] = None
    """What is checked about the element types of operands and result together."""

    lhs = operand_def(ANY_TENSOR)
    rhs = operand_def(ANY_TENSOR)
    broadcast_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(ANY_TENSOR)
    traits = traits_def(Elementwise(), Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)"

    def verify_(self) -> None:
        """Refuse element types that differ, and a result of another type."""
        verify_elements = type(self).VERIFY_ELEMENTS
        if verify_elements is not None:
            verify_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """The operands' type, broadcast; one without a rank where they cannot be broadcast."""
        if not compatible_elements(element_type(self.lhs), element_type(self.rhs)):
            raise VerifyException("mismatched operand types")
        element = self.result_element(element_type(self.lhs))
        operands = (self.lhs.type, self.rhs.type)
        if self.broadcast_dimensions is None:
            return [numpy_broadcast(operands, element)]
        return [broadcast_along(operands, self.broadcast_dimensions.get_values(), element)]

    def result_element(self, element: Attribute) -> Attribute:
        """The type of the result's elements, of that of the operands'."""
        return element


class BitwiseOp(BroadcastBinaryOp):
    """Two truth values or integers."""

    lhs = operand_def(any_rank(BITS))
    rhs = operand_def(any_rank(BITS))


class CompatibleOp(BroadcastBinaryOp):
    """Operands and a result whose quantized elements may differ in their scales."""

    VERIFY_ELEMENTS = verify_compatible_elements


class SameElementsOp(BroadcastBinaryOp):
    """Operands and a result of one element type."""

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
    """Complex numbers of two parts."""

    name = "chlo.broadcast_complex"
    lhs = operand_def(any_rank(FLOATS))
    rhs = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(COMPLEX))

    def result_element(self, element: Attribute) -> Attribute:
        """Complex numbers of such parts."""
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
    """Whether lhs and rhs stand in the given relation."""

    name = "chlo.broadcast_compare"
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(any_rank(BOOLEANS))

    def result_element(self, element: Attribute) -> Attribute:
        """Booleans."""
        return i1


@define
class BroadcastSelectOp(InferredResults):
    """Elements of on_true where pred holds and of on_false elsewhere."""

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
        """Refuse a result of another shape."""
        verify_inferred_shapes(self)

    def infer_types(self) -> Sequence[Attribute]:
        """The type of both choices, broadcast."""
        element = element_type(self.on_true)
        if element != element_type(self.on_false):
            raise VerifyException("mismatched operand types")
        return [numpy_broadcast(self.operand_types, element)]
