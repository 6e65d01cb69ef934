"""Sharding rules for the least communication: registered rules of some operations, restricted or relaxed.

`sdy.passes.spmd.ops` has the class of operation for each of them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Operation

from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.plan.common_sharding import uneven_factors
from sdy.rule import FactorKind, OpShardingRule, TensorMapping, factors_in
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.custom_call import APPROXIMATE_TOP_K, CustomCallOp
from sdy.stablehlo.scatter import ScatterOp
from sdy.stablehlo.shape import ConcatenateOp

_APPROXIMATE_TOP_K = (APPROXIMATE_TOP_K, "PartialReduce")


def replicated_unless_passing_through(rule: OpShardingRule) -> OpShardingRule:
    """Return `rule` with every factor replicated that is not a pass-through factor from an operand to a result."""
    passes_on = factors_in(rule.operands) & factors_in(rule.results)
    passes = {factor for factor in passes_on if rule.kind(factor) is FactorKind.PASS_THROUGH}
    return rule.with_replicated([factor for factor in range(rule.num_factors) if factor not in passes])


def rule_of_concatenation(
    op: ConcatenateOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> OpShardingRule:
    """Return `rule` with the factor of the concatenated dimension as a permutation factor, if an exchange is cheap.

    It is cheap if the largest operand is sharded like the result. In a concatenation of a small `b` behind a large `a`,
    each device needs these rows:

        device    rows of a and b   rows of the result
        0         a0 a1 a2 a3       a0 a1 a2 a3 a4
        1         a4 a5 a6 a7       a5 a6 a7 a8 a9

    Each device holds most of its rows of the result already, or its neighbour does. All-gathering the dimension, or
    resharding to split another one, would send all rows, twice.

    Args:
        op: The concatenation.
        rule: Its sharding rule, in which the concatenated dimension may need replication.
        shardings: The shardings of its operands, then of its result.
        mesh: The mesh on which it runs.
    """
    dim = op.dimension.value.data
    largest = max(range(len(op.operands)), key=lambda index: shape(op.operands[index].type)[dim])
    before, after = (sharding.dim_axes if sharding else () for sharding in (shardings[largest], shardings[-1]))
    # A single-device sharding has no dimensions.
    if not before or not after or not after[dim] or before[dim] != after[dim]:
        return rule
    moving = set(rule.results[0][dim]) & set(rule.need_replication)
    return replace(
        rule,
        need_replication=tuple(factor for factor in rule.need_replication if factor not in moving),
        permutation=tuple(sorted((*rule.permutation, *moving))),
    )


def rule_of_custom_call(
    op: CustomCallOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> OpShardingRule:
    """Return `rule` with the searched dimension of an approximate top-k replicated, even if the result has its size."""
    if op.call_target_name.data not in _APPROXIMATE_TOP_K:
        return rule
    config = op.attributes.get("mhlo.backend_config")
    dim = config.data.get("reduction_dim") if isinstance(config, DictionaryAttr) else None
    if not isinstance(dim, IntegerAttr):
        return rule
    return rule.with_replicated({*rule.operands[0][dim.value.data], *rule.results[0][dim.value.data]})


def rule_by_elements(op: Operation) -> OpShardingRule | None:
    """Return the sharding rule of `op`, relaxed for a scatter, or None if it has no rule."""
    rule = sharding_rule(op)
    return _by_elements(op, rule) if rule is not None and isinstance(op, ScatterOp) else rule


def rule_of_scatter(
    op: ScatterOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> OpShardingRule:
    """Return `rule` without need-replication on the input dimensions along which the windows have size 1.

    The dimension may be split: each device writes the rows of its shard.

        input        start indices    windows       the sharding rule    this rule
        [256, 64]    [n, 1]           [n, 64]       splits the rows      splits the rows
        [256, 64]    [n, 1]           [n, 1, 64]    replicates them      splits them

    A window of several rows may cross the boundary between two shards, so that two devices would have to write it.
    """
    return _by_elements(op, rule)


def _by_elements(op: ScatterOp, rule: OpShardingRule) -> OpShardingRule:
    sizes = op.update_sizes(shape(op.updates[0].type))
    indexed = op.scatter_dimension_numbers.data.scatter_dims_to_operand_dims
    single = {factor for dim in indexed if sizes[dim] == 1 for factor in rule.operands[0][dim]}
    return replace(rule, need_replication=tuple(factor for factor in rule.need_replication if factor not in single))


def rule_of_convolution(
    op: ConvolutionOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> OpShardingRule:
    """Return the rule of a convolution with the factors that `shardings` cannot split marked as need-replication.

    *Factors of a single tensor.* A window of 5 over 8 rows gives 4 results. The input dimension of 8 has only the
    larger of the two factors, the one that it shares with the kernel; the result's factor occurs in no operand, so
    splitting it would split no operand.

    *Unevenly split factors of a dimension with several factors.* 6 features in 2 groups of 3 cannot be padded such that
    two devices have equal shares of each group.
    """
    rule = _with_uneven_windows(op, rule, shardings, mesh)
    tensors = Counter(factor for tensor in rule.tensors for factor in {each for dim in tensor for each in dim})
    of_one_tensor = {factor for factor, count in tensors.items() if count == 1}
    in_composite_dims = {factor for tensor in rule.tensors for dim in tensor if len(dim) > 1 for factor in dim}
    replicated = of_one_tensor | (in_composite_dims & uneven_factors(rule, shardings, mesh))
    return rule.with_replicated(replicated)


def _with_uneven_windows(
    op: ConvolutionOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> OpShardingRule:
    """Return `rule` with only the factor of the windows in the spatial dimensions that `shardings` split unevenly.

    8 rows under 4 windows with stride 2 have two factors, of the windows and of the elements within. Over 8 devices,
    the first four compute a row of the result each. Dimensions whose kernel is split keep both factors.
    """
    uneven = uneven_factors(rule, shardings, mesh) & set(rule.permutation)
    dims, (lhs, kernel), of_kernel = op.dimension_numbers.data, rule.operands, shardings[1]
    for before, within in zip(dims.input_spatial_dimensions, dims.kernel_spatial_dimensions, strict=True):
        if of_kernel is not None and of_kernel.dim_axes[within]:
            continue
        if len(lhs[before]) > 1 and (windows := tuple(factor for factor in lhs[before] if factor in uneven)):
            lhs = (*lhs[:before], windows, *lhs[before + 1 :])
            kernel = (*kernel[:within], (), *kernel[within + 1 :])
    return replace(rule, operands=(lhs, kernel))


def rule_of_split_kernel(
    op: ConvolutionOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None]
) -> OpShardingRule | None:
    """Return the rule that splits input rows like the kernel elements, in the dimensions where the kernel is split.

    A dimension of 8 rows under windows of 8, 8 of them with padding, has one factor in the rule, that of the result. It
    can be split like the kernel instead: devices then exchange rows of the input and all-reduce the result.

    Args:
        op: The convolution.
        rule: Its rule, which splits these input rows like the result.
        shardings: The shardings of the operands and the result.

    Returns:
        The rule, or None if it is the same one.
    """
    factors = dict(_factors_of_split_kernel(op, rule, shardings))
    if not factors:
        return None
    sizes = [factors[factor][-1] if factor in factors else size for factor, size in enumerate(rule.factor_sizes)]
    lhs, kernel = map(list, rule.operands)
    for factor, (before, within, _) in factors.items():
        lhs[before] = kernel[within] = (factor,)
    return replace(
        rule,
        factor_sizes=tuple(sizes),
        operands=(tuple(lhs), tuple(kernel)),
        results=tuple(_without(mapping, factors) for mapping in rule.results),
        reduction=tuple(sorted({*rule.reduction, *factors})),
        need_replication=tuple(factor for factor in rule.need_replication if factor not in factors),
        permutation=tuple(factor for factor in rule.permutation if factor not in factors),
    )


def _factors_of_split_kernel(
    op: ConvolutionOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None]
) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Yield the factor of each input dimension whose kernel dimension is split otherwise, for both to share.

    It comes with the input dimension, the kernel dimension, and the size of the shared factor.
    """
    kernel = shardings[1]
    if kernel is None:
        return
    dims, sizes = op.dimension_numbers.data, [shape(operand.type) for operand in op.operands]
    for before, within in zip(dims.input_spatial_dimensions, dims.kernel_spatial_dimensions, strict=True):
        factors = rule.operands[0][before]
        if kernel.dims[within].axes and factors and factors != rule.operands[1][within]:
            yield factors[0], (before, within, min(sizes[1][within], sizes[0][before]))


def _without(mapping: TensorMapping, factors: Collection[int]) -> TensorMapping:
    return tuple(tuple(factor for factor in dim if factor not in factors) for dim in mapping)
