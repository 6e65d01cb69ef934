"""CHLO's elementwise operations, including special functions."""

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.traits import Pure

from sdy.dialect.interfaces import Elementwise
from sdy.stablehlo.checks.agreement import verify_elementwise
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred, with_element_type
from sdy.stablehlo.checks.shape_checks import verify_same_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.element_types import BOOLEANS, COMPLEX, FLOATS, INEXACT, INTEGERS
from sdy.stablehlo.types.sizes import most_specific
from sdy.stablehlo.types.tensor_types import any_rank, ranked


class UnaryElementwiseOp(IRDLOperation):
    """Base of unary operations on floats."""

    operand = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(FLOATS))
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def verify_(self) -> None:
        """Verify that operand and result have the same type."""
        verify_same_type(self)
        verify_elementwise(self)


class InexactOp(UnaryElementwiseOp):
    """Base of unary operations on floats or complex numbers."""

    operand = operand_def(any_rank(INEXACT))
    result = result_def(any_rank(INEXACT))


class PredicateOp(UnaryElementwiseOp, InferredResults):
    """Base of predicates of one operand."""

    result = result_def(any_rank(BOOLEANS))

    def verify_(self) -> None:
        """Verify that the result has booleans in the operand's shape."""
        verify_elementwise(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return booleans in the operand's shape."""
        return [with_element_type(self.operand.type, i1)]


class SameTypeOp(InferredResults):
    """Base of operations whose operands and result have the same type."""

    traits = traits_def(Elementwise(), Pure())

    def verify_(self) -> None:
        """Verify that operands and result have the same type."""
        verify_same_type(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the most specific type of the operands."""
        return [most_specific(self.operand_types)]


@define
class AcosOp(InexactOp):
    """The inverse cosine."""

    name = "chlo.acos"


@define
class AcoshOp(InexactOp):
    """The inverse hyperbolic cosine."""

    name = "chlo.acosh"


@define
class AsinOp(InexactOp):
    """The inverse sine."""

    name = "chlo.asin"


@define
class AsinAcosKernelOp(UnaryElementwiseOp):
    """Shared part of the complex inverse sine and cosine."""

    name = "chlo._asin_acos_kernel"
    operand = operand_def(any_rank(COMPLEX))
    result = result_def(any_rank(COMPLEX))


@define
class AsinhOp(InexactOp):
    """The inverse hyperbolic sine."""

    name = "chlo.asinh"


@define
class AtanOp(InexactOp):
    """The inverse tangent."""

    name = "chlo.atan"


@define
class AtanhOp(InexactOp):
    """The inverse hyperbolic tangent."""

    name = "chlo.atanh"


@define
class BesselI1eOp(InexactOp):
    """The exponentially scaled modified Bessel function of order 1."""

    name = "chlo.bessel_i1e"


@define
class ConjOp(InexactOp):
    """The complex conjugate."""

    name = "chlo.conj"


@define
class CoshOp(InexactOp):
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
class IsInfOp(PredicateOp):
    """Test each element for infinity."""

    name = "chlo.is_inf"


@define
class IsNegInfOp(PredicateOp):
    """Test each element for negative infinity."""

    name = "chlo.is_neg_inf"


@define
class IsPosInfOp(PredicateOp):
    """Test each element for positive infinity."""

    name = "chlo.is_pos_inf"


@define
class LgammaOp(UnaryElementwiseOp):
    """The logarithm of the absolute value of the gamma function."""

    name = "chlo.lgamma"


@define
class SinhOp(InexactOp):
    """The hyperbolic sine."""

    name = "chlo.sinh"


@define
class SquareOp(InexactOp):
    """The square."""

    name = "chlo.square"


@define
class TanOp(InexactOp):
    """The tangent."""

    name = "chlo.tan"


@define
class NextAfterOp(SameTypeOp):
    """The next number after x towards y."""

    name = "chlo.next_after"
    x = operand_def(any_rank(FLOATS))
    y = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(FLOATS))
    assembly_format = "$x `,` $y attr-dict `:` type($x) `,` type($y) `->` type($result)"


@define
class PolygammaOp(SameTypeOp):
    """The n-th derivative of digamma at x."""

    name = "chlo.polygamma"
    n = operand_def(any_rank(FLOATS))
    x = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(FLOATS))
    assembly_format = "$n `,` $x attr-dict `:` type($n) `,` type($x) `->` type($result)"


@define
class ZetaOp(SameTypeOp):
    """The Hurwitz zeta function of x and q."""

    name = "chlo.zeta"
    x = operand_def(any_rank(FLOATS))
    q = operand_def(any_rank(FLOATS))
    result = result_def(any_rank(FLOATS))
    assembly_format = "$x `,` $q attr-dict `:` type($x) `,` type($q) `->` type($result)"


@define
class MulhiOp(SameTypeOp):
    """The upper half of the product's bits."""

    name = "chlo.mulhi"
    lhs = operand_def(ranked(INTEGERS))
    rhs = operand_def(ranked(INTEGERS))
    result = result_def(ranked(INTEGERS))
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
