"""The algorithm of a dot product: operand precisions, accumulation type and number of primitive operations.

#stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32,
                         lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3,
                         allow_imprecise_accumulation = false>          f32 from three products of bf16 matrices
"""

from dataclasses import dataclass

from xdsl.dialects.builtin import (
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    FloatTF32Type,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from sdy.parse_errors import parse_error
from sdy.stablehlo.attributes.sequence_attribute import SequenceAttr

_F8 = (
    Float8E3M4Type,
    Float8E4M3Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2Type,
    Float8E5M2FNUZType,
)
_TF32 = FloatTF32Type()

_SUPPORTED: dict[tuple[TypeAttribute, TypeAttribute], set[int]] = {
    (f16, f16): {1},
    (f16, f32): {1},
    (bf16, bf16): {1},
    (bf16, f32): {1, 3, 6, 9},
    (_TF32, f32): {1, 3},
    (f32, f32): {1},
    (f64, f64): {1},
}
"""The numbers of primitive operations that some hardware supports, by the types of operands and accumulation."""


def is_f8(type_: Attribute) -> bool:
    """Return whether `type_` is a float of 8 bits."""
    return isinstance(type_, _F8)


@dataclass(frozen=True)
class DotAlgorithm:
    """The precisions and the number of primitive operations that a backend must use for a dot product."""

    lhs_precision_type: TypeAttribute
    rhs_precision_type: TypeAttribute
    accumulation_type: TypeAttribute
    lhs_component_count: int
    rhs_component_count: int
    num_primitive_operations: int
    allow_imprecise_accumulation: bool

    @property
    def problem(self) -> str | None:
        """The error message of an invalid algorithm, None if it is valid."""
        for name, count in (
            ("lhs component count", self.lhs_component_count),
            ("rhs component count", self.rhs_component_count),
            ("num primitive operations", self.num_primitive_operations),
        ):
            if count < 1:
                return f"{name} must be positive"
        return (
            None if self.is_supported else f"dot algorithm not known to be supported on any hardware: {self._summary}"
        )

    @property
    def is_supported(self) -> bool:
        """True if some hardware is known to support the algorithm."""
        lhs, rhs, accumulation = self.lhs_precision_type, self.rhs_precision_type, self.accumulation_type
        if self.lhs_component_count != 1 or self.rhs_component_count != 1:
            return False
        if is_f8(lhs) and is_f8(rhs) and accumulation == f32:
            return self.num_primitive_operations == 1
        operation_counts = _SUPPORTED.get((lhs, accumulation), ())
        return (
            lhs == rhs and self.num_primitive_operations in operation_counts and not self.allow_imprecise_accumulation
        )

    @property
    def _summary(self) -> str:
        return (
            f"{{lhs:'{self.lhs_precision_type}', rhs:'{self.rhs_precision_type}', accum:'{self.accumulation_type}', "
            f"lhs_components:{self.lhs_component_count}, rhs_components:{self.rhs_component_count}, "
            f"primitive_ops:{self.num_primitive_operations}, imprecise:{self.allow_imprecise_accumulation:d}}}"
        )


@irdl_attr_definition
class DotAlgorithmAttr(SequenceAttr[DotAlgorithm]):
    """The algorithm of a dot product, `#stablehlo.dot_algorithm<lhs_precision_type = tf32, ...>`."""

    name = "stablehlo.dot_algorithm"
    STRUCT = DotAlgorithm

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DotAlgorithm:
        """Parse `<lhs_precision_type = tf32, ...>`. Raises ParseError if no known hardware supports the algorithm."""
        start = parser.pos
        algorithm = super().parse_parameter(parser)
        if algorithm.problem is not None:
            raise parse_error(parser, algorithm.problem, start)
        return algorithm
