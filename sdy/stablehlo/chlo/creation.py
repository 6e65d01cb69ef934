"""CHLO's constants and top-k."""

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, i32
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import TYPED
from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred, with_element_type
from sdy.stablehlo.checks.shape_checks import as_ranked, verify_same_shape
from sdy.stablehlo.constants import TensorConstantOp
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.names import DefinedResultNames
from sdy.stablehlo.types.sizes import Dim, dims_of, tensor_like
from sdy.stablehlo.types.tensor_types import ANY_TENSOR


@define
class ConstantOp(TensorConstantOp):
    """A constant tensor."""

    name = "chlo.constant"


@define
class ConstantLikeOp(InferredResults):
    """A splat constant in the shape of the operand."""

    name = "chlo.constant_like"
    value = prop_def(TYPED)
    operand = operand_def(ANY_TENSOR)
    result = result_def(ANY_TENSOR)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Verify that the result has the operand's shape and the value's type."""
        verify_same_shape(self)
        if self._value_type() != element_type(self.result):
            raise VerifyException("value's type doesn't match element return type")
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the operand's type with the value's element type."""
        return [with_element_type(self.operand.type, self._value_type())]

    def _value_type(self) -> Attribute:
        assert isinstance(self.value, TypedAttribute)
        return self.value.get_type()


@define
class TopKOp(InferredResults):
    """The k largest elements along the last dimension, and their indices."""

    name = "chlo.top_k"
    operand = operand_def(ANY_TENSOR)
    k = prop_def(IntegerAttr[I64])
    is_stable = opt_prop_def(BoolAttr, BoolAttr.from_bool(True))
    values = result_def(ANY_TENSOR)
    indices = result_def(ANY_TENSOR)
    traits = traits_def(Pure(), DefinedResultNames())
    assembly_format = (
        "`(` $operand `,` `k` `=` $k (`,` `is_stable` `=` $is_stable^)? `)` attr-dict"
        " `:` type($operand) `->` `(` type($values) `,` type($indices) `)`"
    )

    def infer_types(self) -> Sequence[Attribute]:
        """Return the types of values and indices, with k as the last size."""
        type_, k = as_ranked(self.operand.type), self.k.value.data
        if type_ is None:
            return [self.operand.type, with_element_type(self.operand.type, i32)]
        dims = dims_of(type_)
        if not dims:
            raise VerifyException("operand's rank must be at least 1")
        if dims[-1].is_static and dims[-1].size < k:
            raise VerifyException(f"operand's last dimension must be at least {k}")
        values = tensor_like(type_, [*dims[:-1], Dim(k)])
        return [values, with_element_type(values, i32)]
