"""MLIR's words for what the definitions of operations ask of types and attributes.

An attribute that is not so is refused: `attribute 'dimension' failed to satisfy constraint: 64-bit signless integer
attribute`. Constraints on types mostly bring their own words along, see `sdy.ir.type_constraints`.
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

from sdy.ir.attribute_constraints import (
    I64_ELEMENTS,
    NON_NEGATIVE_I32,
    NON_NEGATIVE_I64,
    POSITIVE_I32,
    POSITIVE_I64,
)
from sdy.ir.type_constraints import Described

_OF_ATTRIBUTES = {
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
"""By the names of attributes: what MLIR's dialects call attributes of that kind."""

_OF_ARRAYS = {
    "chlo.precision": "Precision Config attribute",
    "stablehlo.output_operand_alias": "Aliasing attribute for outputs and operands of CustomCall",
    "stablehlo.precision": "Precision Config attribute",
}
"""By the names of attributes: arrays of them."""

_OF_CONSTRAINTS: tuple[tuple[IRDLAttrConstraint, str], ...] = (
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
_TABLE: dict[AttrConstraint, str] = {
    irdl_to_attr_constraint(constraint): described for constraint, described in _OF_CONSTRAINTS
}


def words(constraint: AttrConstraint) -> str | None:
    """What MLIR calls what the constraint accepts; None where it is not known."""
    match constraint:
        case Described():
            return constraint.description
        case BaseAttr(attr=kind):
            return _OF_ATTRIBUTES.get(getattr(kind, "name", ""))
        case ArrayOfConstraint(elem_range_constraint=RangeOf(constr=BaseAttr(attr=kind))):
            return _OF_ARRAYS.get(getattr(kind, "name", ""))
        case AnyOf(attr_constrs=parts):
            return _joined(words(part) for part in parts)
        case _:
            return _TABLE.get(constraint)


def _joined(described: Iterable[str | None]) -> str | None:
    parts = dict.fromkeys(described)
    return None if None in parts else " or ".join(part for part in parts if part is not None)
