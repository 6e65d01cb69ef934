"""Verification of sharding rules against the types of operands and results, with MLIR's messages."""

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, ShapedType
from xdsl.ir import Attribute

from sdy.dialect.rule_syntax import factor_name
from sdy.rule import OpShardingRule, TensorMapping


def rule_problem(
    rule: OpShardingRule, operand_types: Sequence[Attribute], result_types: Sequence[Attribute]
) -> str | None:
    """Return the error message of a rule that is invalid for an operation of these types; None for a valid one."""
    return (
        _mappings_problem(rule, operand_types, rule.operands, "operand")
        or _mappings_problem(rule, result_types, rule.results, "result")
        or _unused_factor(rule)
        or _kinds_problem(rule)
    )


def _mappings_problem(
    rule: OpShardingRule, types: Sequence[Attribute], mappings: Sequence[TensorMapping], kind: str
) -> str | None:
    if len(types) != len(mappings):
        return f"number of {kind}s and mappings must match: {len(types)} != {len(mappings)}"
    if not mappings:
        return (
            f"number of {kind}s mappings cannot be 0. Op sharding rules can only be defined on operations with at "
            "least one operand and result."
        )
    for index, (type_, mapping) in enumerate(zip(types, mappings, strict=True)):
        if problem := _mapping_problem(rule, type_, mapping):
            return f"{kind} - {problem}" if len(types) == 1 else f"{kind} {index} - {problem}"
    return None


def _mapping_problem(rule: OpShardingRule, type_: Attribute, mapping: TensorMapping) -> str | None:
    # Scalars of other dialects than StableHLO count as tensors of rank 0.
    is_tensor = isinstance(type_, ShapedType) and type_.has_static_shape()
    if not is_tensor and not isinstance(type_, AnyFloat | IntegerType | IndexType):
        return f"expected a ranked tensor with a static shape. type: '{type_}'"
    rank = type_.get_num_dims() if isinstance(type_, ShapedType) else 0
    if len(mapping) != rank:
        return f"mapping rank must match: {len(mapping)} != {rank}"
    seen: set[int] = set()
    for factors in mapping:
        if not factors:
            return "dim mapping must have at least one factor"
        for factor in factors:
            if not 0 <= factor < rule.num_factors:
                return (
                    "expecting factor indices to be within 0<=...<num_factors; "
                    f"received: {factor}, num_factors: {rule.num_factors}"
                )
            if factor in seen:
                return "cannot reuse factors for the same tensor value"
            if rule.factor_sizes[factor] == 1 and len(factors) > 1:
                return "dim mapping can't have a factor of size 1 if there are multiple factors"
            seen.add(factor)
    return None


def _unused_factor(rule: OpShardingRule) -> str | None:
    used = {factor for mapping in rule.tensors for factors in mapping for factor in factors}
    for factor, size in enumerate(rule.factor_sizes):
        if factor not in used:
            return f"has factor {factor_name(factor)}={size} that isn't used in operand and result mappings"
    return None


def _kinds_problem(rule: OpShardingRule) -> str | None:
    kinds = (rule.reduction, rule.need_replication, rule.permutation)
    for factors in kinds:
        if problem := _indices_problem(factors, rule.num_factors):
            return problem
    if len({factor for factors in kinds for factor in factors}) != sum(map(len, kinds)):
        return "a factor can only be in one of the reduction, need replication, or permutation factor sets"
    if problem := _indices_problem(rule.blocked_propagation, rule.num_factors):
        return problem
    in_results = {factor for mapping in rule.results for factors in mapping for factor in factors}
    if not in_results.isdisjoint(rule.reduction):
        return "reduction factor cannot be in result mappings"
    return None


def _indices_problem(factors: Sequence[int], num_factors: int) -> str | None:
    if list(factors) != sorted(factors):
        return "indices of special factors must be sorted"
    if len(set(factors)) != len(factors):
        return "indices of special factors must be unique"
    if factors and factors[-1] >= num_factors:
        return f"index must be less than {num_factors}, got: {factors[-1]}"
    return None
