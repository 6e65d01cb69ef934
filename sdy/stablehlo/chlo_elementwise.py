"""CHLO's elementwise operations: special functions, and operations that broadcast their operands first."""

from xdsl.dialects.builtin import (
    TensorType,
)
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo.attributes import I64_ARRAY
from sdy.stablehlo.definition import define
from sdy.stablehlo.shape_checks import verify_same_shape


class UnaryElementwiseOp(IRDLOperation):
    """One operand, and a result of its shape."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def verify_(self) -> None:
        """Refuse a result of another shape."""
        verify_same_shape(self)


class BroadcastBinaryOp(IRDLOperation):
    """Two operands, broadcast to the result's shape as numpy does or as broadcast_dimensions says."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    broadcast_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)"


@define
class AcosOp(UnaryElementwiseOp):
    """The inverse cosine."""

    name = "chlo.acos"


@define
class AcoshOp(UnaryElementwiseOp):
    """The inverse hyperbolic cosine."""

    name = "chlo.acosh"


@define
class AsinOp(UnaryElementwiseOp):
    """The inverse sine."""

    name = "chlo.asin"


@define
class AsinAcosKernelOp(UnaryElementwiseOp):
    """The part that complex inverse sine and cosine have in common."""

    name = "chlo._asin_acos_kernel"


@define
class AsinhOp(UnaryElementwiseOp):
    """The inverse hyperbolic sine."""

    name = "chlo.asinh"


@define
class AtanOp(UnaryElementwiseOp):
    """The inverse tangent."""

    name = "chlo.atan"


@define
class AtanhOp(UnaryElementwiseOp):
    """The inverse hyperbolic tangent."""

    name = "chlo.atanh"


@define
class BesselI1eOp(UnaryElementwiseOp):
    """The exponentially scaled modified Bessel function of order 1."""

    name = "chlo.bessel_i1e"


@define
class ConjOp(UnaryElementwiseOp):
    """The complex conjugate."""

    name = "chlo.conj"


@define
class CoshOp(UnaryElementwiseOp):
    """The hyperbolic cosine."""

    name = "chlo.cosh"


@define
class DigammaOp(UnaryElementwiseOp):
    """The derivative of lgamma."""

    name = "chlo.digamma"


@define
class ErfOp(UnaryElementwiseOp):
    """The error function."""

    name = "chlo.erf"


@define
class ErfInvOp(UnaryElementwiseOp):
    """The inverse of the error function."""

    name = "chlo.erf_inv"


@define
class ErfcOp(UnaryElementwiseOp):
    """One minus the error function."""

    name = "chlo.erfc"


@define
class IsInfOp(UnaryElementwiseOp):
    """Whether each element is infinite."""

    name = "chlo.is_inf"


@define
class IsNegInfOp(UnaryElementwiseOp):
    """Whether each element is minus infinity."""

    name = "chlo.is_neg_inf"


@define
class IsPosInfOp(UnaryElementwiseOp):
    """Whether each element is plus infinity."""

    name = "chlo.is_pos_inf"


@define
class LgammaOp(UnaryElementwiseOp):
    """The logarithm of the absolute value of the gamma function."""

    name = "chlo.lgamma"


@define
class SinhOp(UnaryElementwiseOp):
    """The hyperbolic sine."""

    name = "chlo.sinh"


@define
class SquareOp(UnaryElementwiseOp):
    """The square."""

    name = "chlo.square"


@define
class TanOp(UnaryElementwiseOp):
    """The tangent."""

    name = "chlo.tan"


@define
class BroadcastAddOp(BroadcastBinaryOp):
    """lhs + rhs."""

    name = "chlo.broadcast_add"


@define
class BroadcastAndOp(BroadcastBinaryOp):
    """Logical or bitwise and."""

    name = "chlo.broadcast_and"


@define
class BroadcastAtan2Op(BroadcastBinaryOp):
    """The angle of the point (rhs, lhs)."""

    name = "chlo.broadcast_atan2"


@define
class BroadcastComplexOp(BroadcastBinaryOp):
    """Complex numbers of two parts."""

    name = "chlo.broadcast_complex"


@define
class BroadcastDivOp(BroadcastBinaryOp):
    """lhs / rhs."""

    name = "chlo.broadcast_divide"


@define
class BroadcastMaxOp(BroadcastBinaryOp):
    """The larger element."""

    name = "chlo.broadcast_maximum"


@define
class BroadcastMinOp(BroadcastBinaryOp):
    """The smaller element."""

    name = "chlo.broadcast_minimum"


@define
class BroadcastMulOp(BroadcastBinaryOp):
    """lhs * rhs."""

    name = "chlo.broadcast_multiply"


@define
class BroadcastNextAfterOp(BroadcastBinaryOp):
    """The next number after lhs towards rhs."""

    name = "chlo.broadcast_next_after"


@define
class BroadcastOrOp(BroadcastBinaryOp):
    """Logical or bitwise or."""

    name = "chlo.broadcast_or"


@define
class BroadcastPolygammaOp(BroadcastBinaryOp):
    """The lhs-th derivative of digamma."""

    name = "chlo.broadcast_polygamma"


@define
class BroadcastPowOp(BroadcastBinaryOp):
    """lhs to the power of rhs."""

    name = "chlo.broadcast_power"


@define
class BroadcastRemOp(BroadcastBinaryOp):
    """The remainder of the division."""

    name = "chlo.broadcast_remainder"


@define
class BroadcastShiftLeftOp(BroadcastBinaryOp):
    """lhs shifted left."""

    name = "chlo.broadcast_shift_left"


@define
class BroadcastShiftRightArithmeticOp(BroadcastBinaryOp):
    """lhs shifted right, the sign bit filling."""

    name = "chlo.broadcast_shift_right_arithmetic"


@define
class BroadcastShiftRightLogicalOp(BroadcastBinaryOp):
    """lhs shifted right, zeros filling."""

    name = "chlo.broadcast_shift_right_logical"


@define
class BroadcastSubOp(BroadcastBinaryOp):
    """lhs - rhs."""

    name = "chlo.broadcast_subtract"


@define
class BroadcastXorOp(BroadcastBinaryOp):
    """Logical or bitwise exclusive or."""

    name = "chlo.broadcast_xor"


@define
class BroadcastZetaOp(BroadcastBinaryOp):
    """The Hurwitz zeta function."""

    name = "chlo.broadcast_zeta"


@define
class BroadcastSelectOp(IRDLOperation):
    """Elements of on_true where pred holds and of on_false elsewhere."""

    name = "chlo.broadcast_select"
    pred = operand_def(TensorType)
    on_true = operand_def(TensorType)
    on_false = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = (
        "$pred `,` $on_true `,` $on_false attr-dict"
        " `:` `(` type($pred) `,` type($on_true) `,` type($on_false) `)` `->` type($result)"
    )


@define
class NextAfterOp(IRDLOperation):
    """The next number after x towards y."""

    name = "chlo.next_after"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$x `,` $y attr-dict `:` type($x) `,` type($y) `->` type($result)"


@define
class PolygammaOp(IRDLOperation):
    """The n-th derivative of digamma at x."""

    name = "chlo.polygamma"
    n = operand_def(TensorType)
    x = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$n `,` $x attr-dict `:` type($n) `,` type($x) `->` type($result)"


@define
class ZetaOp(IRDLOperation):
    """The Hurwitz zeta function of x and q."""

    name = "chlo.zeta"
    x = operand_def(TensorType)
    q = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$x `,` $q attr-dict `:` type($x) `,` type($q) `->` type($result)"


@define
class MulhiOp(IRDLOperation):
    """The upper half of the product's bits."""

    name = "chlo.mulhi"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
