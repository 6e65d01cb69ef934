"""Constraints on types and attributes of operations, and on encodings of tensor types.

Type constraints have MLIR's description, which error messages quote; `sdy.text.verification.constraint_words` describes
the constraints on attributes.

    lhs = operand_def(Described("32-bit signless integer", i32.__eq__))

The verifier reports any other operand: `operand #0 must be 32-bit signless integer, but got 'f32'`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from typing_extensions import TypeVar
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    ShapedType,
    TensorType,
    UnrankedMemRefType,
    UnrankedTensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import AnyAttr, AtLeast, AttrConstraint, IntConstraint, ParamAttrConstraint, VerificationContext
from xdsl.utils.exceptions import VerifyException


@dataclass(frozen=True)
class Described(AttrConstraint):
    """Constraint to the types that the predicate `accepts`."""

    description: str
    accepts: Callable[[Attribute], bool]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Raise VerifyException for other types."""
        if not self.accepts(attr):
            raise VerifyException(f"must be {self.description}, but got '{attr}'")

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> "Described":
        """Return the constraint itself: it has no type variables."""
        return self


def either(*constraints: Described) -> Described:
    """Return the union of constraints."""
    return Described(
        " or ".join(constraint.description for constraint in constraints),
        lambda type_: any(constraint.accepts(type_) for constraint in constraints),
    )


def _is_shaped(type_: Attribute) -> bool:
    return isinstance(type_, ShapedType | UnrankedTensorType | UnrankedMemRefType)


def _is_ranked_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType)


def _is_static_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType) and type_.has_static_shape()


# xDSL has no token types to exclude.
SHAPED = Described("shaped of any non-token type values", _is_shaped)
RANKED_TENSOR = Described("ranked tensor of any non-token type values", _is_ranked_tensor)
STATIC_TENSOR = Described("statically shaped tensor of any non-token type values", _is_static_tensor)
TYPED = Described("TypedAttr instance", lambda attribute: isinstance(attribute, TypedAttribute))

NON_NEGATIVE_I32 = IntegerAttr.constr(type=i32, value=AtLeast(0))
NON_NEGATIVE_I64 = IntegerAttr.constr(type=i64, value=AtLeast(0))
POSITIVE_I32 = IntegerAttr.constr(type=i32, value=AtLeast(1))
POSITIVE_I64 = IntegerAttr.constr(type=i64, value=AtLeast(1))
I64_ELEMENTS = ParamAttrConstraint(DenseIntOrFPElementsAttr, (TensorType.constr(i64), AnyAttr()))
"""`dense<...> : tensor<...xi64>`."""


class TensorEncoding(ABC):
    """An encoding that is valid for some tensor types only, such as `#stablehlo.bounds<3, ?>` for `tensor<?x4xf32>`.

    MLIR verifies an encoding when the tensor type is built; here the parser does.
    """

    @abstractmethod
    def verify_encoding(self, tensor: TensorType[Attribute]) -> None:
        """Raise VerifyException if this encoding is invalid for `tensor`, which is passed without an encoding."""
