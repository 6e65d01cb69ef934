"""Type constraints with MLIR's description, which error messages quote.

    lhs = operand_def(Described("32-bit signless integer", i32.__eq__))

The verifier reports any other operand: `operand #0 must be 32-bit signless integer, but got 'f32'`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from typing_extensions import TypeVar
from xdsl.dialects.builtin import MemRefType, TensorType, UnrankedMemRefType, UnrankedTensorType, VectorType
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import AttrConstraint, IntConstraint, VerificationContext
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
    return isinstance(type_, TensorType | UnrankedTensorType | VectorType | MemRefType | UnrankedMemRefType)


def _is_ranked_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType)


def _is_static_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType) and type_.has_static_shape()


# xDSL has no token types to exclude.
SHAPED = Described("shaped of any non-token type values", _is_shaped)
RANKED_TENSOR = Described("ranked tensor of any non-token type values", _is_ranked_tensor)
STATIC_TENSOR = Described("statically shaped tensor of any non-token type values", _is_static_tensor)
TYPED = Described("TypedAttr instance", lambda attribute: isinstance(attribute, TypedAttribute))
