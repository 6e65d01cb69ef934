"""Operations that are independent along the pass-through factors of their sharding rules.

A sort of the rows of a matrix is a grid of one step per row; a step reads and writes a whole row. Fourier transforms,
matrix algorithms, and custom calls and operators with an annotation have such grids too.
"""

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.registry import NoBlocks, register
from sdy.dialect.attributes import SHARDING_RULE
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.rule import FactorKind, OpShardingRule, TensorMapping, factors_in
from sdy.rules import sharding_rule
from sdy.rules.call_targets import has_own_rule
from sdy.stablehlo import CustomCallOp, DynamicUpdateSliceOp, ScatterOp

_BATCHED = """
    batch_norm_inference bitcast_convert cholesky dynamic_slice fft map reshape select_and_scatter sort triangular_solve
"""
_BATCHED_CALLS = ("ApproxTopK", "mhlo.topk", "PartialReduce", "ProductOfElementaryHouseholderReflectors", "Qr")
"""The custom calls whose registered rules have a pass-through factor along batch dimensions only."""


@register("chlo.top_k", *(f"stablehlo.{name}" for name in _BATCHED.split()))
def independent(op: Operation, block: BlockBuilder) -> float:
    """Add an axis per pass-through factor of an operand and a result; the other dimensions are accessed in full."""
    return _add_axes(op, block)


@register("stablehlo.dynamic_update_slice")
def dynamic_update_slice(op: DynamicUpdateSliceOp, block: BlockBuilder) -> float:
    """Add an axis per dimension that the update covers."""
    return _add_axes(op, block, shared_with=1)


@register("stablehlo.scatter")
def scatter(op: ScatterOp, block: BlockBuilder) -> float:
    """Add an axis per batching dimension, and per window dimension that the updates cover.

    A start index along any other dimension counts from the first element of the operand, which a block may not have.
    """
    return _add_axes(op, block, shared_with=len(op.operands) - 1)


def _add_axes(op: Operation, block: BlockBuilder, shared_with: int | None = None) -> float:
    """Add the axes of `independent`; the factors of axes are also factors of the operand `shared_with`."""
    rule = sharding_rule(op)
    if rule is None or not all(is_static_tensor(value.type) for value in (*op.operands, *op.results)):
        raise NoBlocks
    shapes = [shape_of(value) for value in (*op.operands, *op.results)]
    whole = _whole_factors(rule, shapes, shared_with)
    for factor, size in enumerate(rule.factor_sizes):
        operands, results = _places(rule, factor, rule.operands), _places(rule, factor, rule.results)
        if factor in whole:
            operand_dims, result_dims = (
                {tensor: dim for tensor, (dim, _) in places.items()} for places in (operands, results)
            )
            block.add_whole(size, operand_dims, result_dims, factor in rule.blocked_propagation, rule.kind(factor))
        else:
            block.add(size, operands, results, rule.kind(factor))
    for see, mappings in ((block.see_operand, rule.operands), (block.see_result, rule.results)):
        for tensor, mapping in enumerate(mappings):
            for dim, factors in enumerate(mapping):
                if not whole.issuperset(factors):
                    see(tensor, dim, prod(rule.factor_sizes[factor] for factor in whole.intersection(factors)))
    return 1


@register("stablehlo.custom_call")
def custom_call(op: CustomCallOp, block: BlockBuilder) -> float:
    """Add the axes of an annotated call, or of a call whose registered rule is independent along batch dimensions."""
    target = op.call_target_name.data
    if SHARDING_RULE not in op.attributes and has_own_rule(target) and target not in _BATCHED_CALLS:
        raise NoBlocks
    return independent(op, block)


def _whole_factors(rule: OpShardingRule, shapes: Sequence[Sequence[int]], shared_with: int | None) -> set[int]:
    """Return the factors that are not axes: all but pass-through ones, and those minor to one in a dimension.

    A factor of only operands or only results would give every block the same elements, or elements of other ones.
    """
    shared = factors_in(rule.operands) & factors_in(rule.results)
    if shared_with is not None:
        shared &= factors_in([rule.operands[shared_with]])
    whole = {
        factor
        for factor in range(rule.num_factors)
        if rule.kind(factor) is not FactorKind.PASS_THROUGH or factor not in shared
    }
    dims = [
        (factors, size)
        for mapping, shape in zip(rule.tensors, shapes, strict=True)
        for factors, size in zip(mapping, shape, strict=True)
    ]
    whole.update(*(factors for factors, size in dims if prod(rule.factor_sizes[each] for each in factors) != size))
    while minor := {
        factor
        for factors, _ in dims
        for place, factor in enumerate(factors)
        if factor not in whole and not whole.isdisjoint(factors[:place])
    }:
        whole |= minor
    return whole


def _places(rule: OpShardingRule, factor: int, mappings: Sequence[TensorMapping]) -> dict[int, tuple[int, int]]:
    """Return the dimension of each tensor that has a factor, and the elements between its steps."""
    return {
        tensor: (dim, prod(rule.factor_sizes[minor] for minor in factors[factors.index(factor) + 1 :]))
        for tensor, mapping in enumerate(mappings)
        for dim, factors in enumerate(mapping)
        if factor in factors
    }
