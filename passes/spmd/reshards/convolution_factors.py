"""Factors of a convolution that must be replicated although its sharding rule allows splitting them.

*Factors of a single tensor.* A window of 5 over 8 rows gives 4 results. The input dimension of 8 has only the larger
of the two factors, the one that it shares with the kernel; the result's factor occurs in no operand, so splitting it
would split no operand.

*Unevenly split factors of a dimension with several factors.* 6 features in 2 groups of 3 cannot be padded such that
two devices have equal shares of each group.

A dimension of 8 rows under windows of 8, 8 of them with padding, has one factor in the rule, that of the result. It can
be split like the kernel instead: devices then exchange rows of the input and all-reduce the result.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.spmd.uneven_factors import uneven_factors
from sdy.rule import OpShardingRule, TensorMapping
from sdy.sharding import TensorSharding
from sdy.stablehlo.convolution import ConvolutionOp


def rule_of_convolution(rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> OpShardingRule:
    """Return the rule of a convolution with the factors that `shardings` cannot split marked as need-replication."""
    tensors = Counter(factor for tensor in rule.tensors for factor in {each for dim in tensor for each in dim})
    of_one_tensor = {factor for factor, count in tensors.items() if count == 1}
    in_composite_dims = {factor for tensor in rule.tensors for dim in tensor if len(dim) > 1 for factor in dim}
    replicated = of_one_tensor | (in_composite_dims & uneven_factors(rule, shardings, mesh))
    return rule.with_replicated(replicated)


def rule_of_split_kernel(
    op: ConvolutionOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None]
) -> OpShardingRule | None:
    """Return the rule that splits input rows like the kernel elements, in the dimensions where the kernel is split.

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
    sizes = [factors[factor][1] if factor in factors else size for factor, size in enumerate(rule.factor_sizes)]
    lhs, kernel = rule.operands
    within = {dim: (factor,) for factor, (dim, _) in factors.items()}
    return replace(
        rule,
        factor_sizes=tuple(sizes),
        operands=(lhs, tuple(within.get(dim, of_dim) for dim, of_dim in enumerate(kernel))),
        results=tuple(_without(mapping, factors) for mapping in rule.results),
        reduction=tuple(sorted({*rule.reduction, *factors})),
        need_replication=tuple(factor for factor in rule.need_replication if factor not in factors),
        permutation=tuple(factor for factor in rule.permutation if factor not in factors),
    )


def _factors_of_split_kernel(
    op: ConvolutionOp, rule: OpShardingRule, shardings: Sequence[TensorSharding | None]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each input factor that a split kernel dimension lacks, with this dimension and the size that they share."""
    kernel = shardings[1]
    if kernel is None:
        return
    dims, sizes = op.dimension_numbers.data, [shape(operand.type) for operand in op.operands]
    for before, within in zip(dims.input_spatial_dimensions, dims.kernel_spatial_dimensions, strict=True):
        factors = rule.operands[0][before]
        if kernel.dims[within].axes and len(factors) == 1 and factors != rule.operands[1][within]:
            yield factors[0], (within, min(sizes[1][within], sizes[0][before]))


def _without(mapping: TensorMapping, factors: Collection[int]) -> TensorMapping:
    return tuple(tuple(factor for factor in dim if factor not in factors) for dim in mapping)
