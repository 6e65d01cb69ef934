"""MLIR's descriptions of the constraints on types and attributes, for error messages.

An attribute that violates its constraint is reported as `attribute 'dimension' failed to satisfy constraint: 64-bit
signless integer attribute`. Most type constraints carry their own description, see `sdy.ir.constraints`.
"""

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    I32,
    I64,
    ArrayOfConstraint,
    BoolAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IndexType,
    IntegerAttr,
    i1,
    i32,
    i64,
)
from xdsl.irdl import AnyOf, AttrConstraint, BaseAttr, IRDLAttrConstraint, RangeOf, irdl_to_attr_constraint

from sdy.ir.constraints import (
    I64_ELEMENTS,
    NON_NEGATIVE_I32,
    NON_NEGATIVE_I64,
    POSITIVE_I32,
    POSITIVE_I64,
    Described,
)

_ATTRIBUTE_DESCRIPTIONS = {
    "array": "array attribute",
    "dense": "constant vector/tensor attribute",
    "dense_resource": "constant vector/tensor attribute",
    "dictionary": "dictionary of named attribute values",
    "string": "string attribute",
    "unit": "unit attribute",
    "chlo.comparison_direction": "Which comparison operation to perform.",
    "chlo.comparison_type": "Which comparison type to use.",
    "chlo.ragged_dot": "Attribute that models the dimension information for ragged dot.",
    "sdy.all_to_all_param_list": "List of all-to-all parameters",
    "sdy.axis_ref_list": "List of axis refs",
    "sdy.list_of_axis_ref_lists": "List of axis ref lists",
    "sdy.manual_axes": "A list of axes that a ManualComputationOp is manual on",
    "sdy.mesh": "Mesh of axes and a list of devices",
    "sdy.sharding": "Tensor sharding",
    "sdy.sharding_per_value": "Tensor sharding per operand/result of an op",
    "stablehlo.channel_handle": "two 64-bit integers 'handle' and 'type'",
    "stablehlo.comparison_direction": "Which comparison operation to perform.",
    "stablehlo.comparison_type": "Which comparison type to use.",
    "stablehlo.conv": "Structure of dimension information for conv op",
    "stablehlo.dot": "Attribute that models the dimension information for dot.",
    "stablehlo.dot_algorithm": "Attribute that models the algorithm constraints to use for computing dot.",
    "stablehlo.fft_type": "XLA fast fourier transform type.",
    "stablehlo.gather": "Attribute that models the dimension information for gather",
    "stablehlo.replica_group_mesh_axes": "mesh and axes based replica groups representation.",
    "stablehlo.result_accuracy": "The requested accuracy for transcendental unary ops.",
    "stablehlo.rng_algorithm": "XLA PRNG algorithm to be used.",
    "stablehlo.rng_distribution": "XLA PRNG distribution to be used.",
    "stablehlo.scatter": "Attribute that models the dimension information for scatter",
    "stablehlo.transpose": "Transpose options",
}
"""Descriptions of attribute classes, by attribute name."""

_ARRAY_DESCRIPTIONS = {
    "chlo.precision": "Precision Config attribute",
    "stablehlo.output_operand_alias": "Aliasing attribute for outputs and operands of CustomCall",
    "stablehlo.precision": "Precision Config attribute",
}
"""Descriptions of arrays, by the name of the element attribute."""

_DESCRIBED_CONSTRAINTS: tuple[tuple[IRDLAttrConstraint, str], ...] = (
    (IntegerAttr[I32], "32-bit signless integer attribute"),
    (IntegerAttr[I64], "64-bit signless integer attribute"),
    (IntegerAttr[IndexType], "index attribute"),
    (BoolAttr, "bool attribute"),
    (FlatSymbolRefAttrConstr, "flat symbol reference attribute"),
    (DenseArrayBase.constr(i1), "i1 dense array attribute"),
    (DenseArrayBase.constr(i32), "i32 dense array attribute"),
    (DenseArrayBase.constr(i64), "i64 dense array attribute"),
    (I64_ELEMENTS, "64-bit signless integer elements attribute"),
    (NON_NEGATIVE_I32, "32-bit signless integer attribute whose value is non-negative"),
    (NON_NEGATIVE_I64, "64-bit signless integer attribute whose value is non-negative"),
    (POSITIVE_I32, "32-bit signless integer attribute whose value is positive"),
    (POSITIVE_I64, "64-bit signless integer attribute whose value is positive"),
)
_CONSTRAINT_DESCRIPTIONS: dict[AttrConstraint, str] = {
    irdl_to_attr_constraint(constraint): description for constraint, description in _DESCRIBED_CONSTRAINTS
}


def describe_constraint(constraint: AttrConstraint) -> str | None:
    """Return MLIR's description of a constraint, None if it is unknown."""
    match constraint:
        case Described():
            return constraint.description
        case BaseAttr(attr=kind):
            return _ATTRIBUTE_DESCRIPTIONS.get(getattr(kind, "name", ""))
        case ArrayOfConstraint(elem_range_constraint=RangeOf(constr=BaseAttr(attr=kind))):
            return _ARRAY_DESCRIPTIONS.get(getattr(kind, "name", ""))
        case AnyOf(attr_constrs=parts):
            return _joined(describe_constraint(part) for part in parts)
        case _:
            return _CONSTRAINT_DESCRIPTIONS.get(constraint)


def _joined(descriptions: Iterable[str | None]) -> str | None:
    parts = dict.fromkeys(descriptions)
    return None if None in parts else " or ".join(part for part in parts if part is not None)
