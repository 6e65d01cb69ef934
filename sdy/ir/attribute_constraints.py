"""Constraints on attributes; `sdy.text.verification.constraint_words` has MLIR's descriptions of them."""

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType, i32, i64
from xdsl.irdl import AnyAttr, AtLeast, ParamAttrConstraint

NON_NEGATIVE_I32 = IntegerAttr.constr(type=i32, value=AtLeast(0))
NON_NEGATIVE_I64 = IntegerAttr.constr(type=i64, value=AtLeast(0))
POSITIVE_I32 = IntegerAttr.constr(type=i32, value=AtLeast(1))
POSITIVE_I64 = IntegerAttr.constr(type=i64, value=AtLeast(1))
I64_ELEMENTS = ParamAttrConstraint(DenseIntOrFPElementsAttr, (TensorType.constr(i64), AnyAttr()))
"""`dense<...> : tensor<...xi64>`."""
