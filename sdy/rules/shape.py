"""Rules of data-movement operations: broadcast, transpose, reverse, slice, pad, concatenate."""

from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConstantLike

from sdy.dialect.ops import ConstantOp
from sdy.rule import FactorKind
from sdy.rules.builder import NEED_REPLICATION, PERMUTATION, Factors, RuleBuilder, shape_of
from sdy.rules.registry import register, register_movement

if TYPE_CHECKING:
    from sdy.stablehlo.broadcast import BroadcastInDimOp
    from sdy.stablehlo.padding import PadOp
    from sdy.stablehlo.shape import ConcatenateOp, ReverseOp, TransposeOp
    from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp


@register_movement("stablehlo.broadcast_in_dim")
def broadcast_in_dim(op: "BroadcastInDimOp", rule: Factors) -> None:
    """Add the factors `([i, k])->([i, j, k])`; an expanded dimension of size 1 shares no factor with its result."""
    operand, result = shape_of(op.operand), shape_of(op.result)
    operand_dims = {result_dim: dim for dim, result_dim in enumerate(op.broadcast_dimensions.get_values())}
    for result_dim, size in enumerate(result):
        dim = operand_dims.get(result_dim)
        if dim is None:
            rule.add(size, {}, {0: result_dim})
        elif operand[dim] == size:
            rule.add(size, {0: dim}, {0: result_dim})
        else:
            rule.add(1, {0: dim}, {})
            rule.add(size, {}, {0: result_dim})


@register_movement("stablehlo.transpose")
def transpose(op: "TransposeOp", rule: Factors) -> None:
    """Add the factors `([i, j])->([j, i])`, numbered in the order of the result."""
    operand = shape_of(op.operand)
    for result_dim, dim in enumerate(op.permutation.get_values()):
        rule.add(operand[dim], {0: dim}, {0: result_dim})


@register_movement("stablehlo.reverse")
def reverse(op: "ReverseOp", rule: Factors) -> None:
    """Add pointwise factors; those of reversed dimensions are permutation factors."""
    reversed_dims = op.dimensions.get_values()
    for dim, size in enumerate(shape_of(op.result)):
        if dim in reversed_dims:
            rule.add(size, {0: dim}, {0: dim}, PERMUTATION)
            rule.read_backwards(0, dim)
        else:
            rule.add(size, {0: dim}, {0: dim})


@register("stablehlo.slice", "stablehlo.pad")
def slice_or_pad(op: "SliceOp | PadOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; those of dimensions that change their size are permutation factors."""
    _add_resized(op, rule, PERMUTATION, blocked=rule.conservative)


@register("stablehlo.dynamic_slice")
def dynamic_slice(op: "DynamicSliceOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; dimensions that change their size require replication."""
    _add_resized(op, rule, NEED_REPLICATION, blocked=True)


@register("stablehlo.dynamic_update_slice", looks_around=True)
def dynamic_update_slice(op: "DynamicUpdateSliceOp", rule: RuleBuilder) -> None:
    """Add the factors of a dynamic update slice.

    Along a partially updated dimension, operand and result can be sharded: each device updates its own shard. The
    update then requires replication, unless the start indices are constant.
    """
    known = all(_is_constant(index) for index in op.start_indices)
    for dim, (size, update_size) in enumerate(zip(shape_of(op.operand), shape_of(op.update), strict=True)):
        if size == update_size:
            rule.add(size, {0: dim, 1: dim}, {0: dim})
        else:
            rule.add(size, {0: dim}, {0: dim})
            rule.add(update_size, {1: dim}, {}, FactorKind.PASS_THROUGH if known else NEED_REPLICATION)


@register("stablehlo.concatenate", looks_around=True)
def concatenate(op: "ConcatenateOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; the concatenated dimension requires replication, or is a permutation of slices.

    The operands' sizes differ from the result's, so a conservative rule has no shared factor along this dimension.
    """
    dim = op.dimension.value.data
    rule.add_pointwise(
        shape_of(op.result), kinds={dim: concatenation_kind(op)}, skipped=(dim,) if rule.conservative else ()
    )


def concatenation_kind(op: "ConcatenateOp") -> FactorKind:
    """Return the kind of the concatenated dimension's factor: concatenated slices only permute elements."""
    sources = [_before_slice(operand) for operand in op.operands]
    sliced = [source is not operand for source, operand in zip(sources, op.operands, strict=True)]
    is_shift = all(sliced) or (any(sliced) and all(source is sources[0] for source in sources))
    return PERMUTATION if is_shift else NEED_REPLICATION


def _add_resized(op: Operation, rule: RuleBuilder, kind: FactorKind, blocked: bool) -> None:
    """Add a factor for each dimension; dimensions that change their size get the kind `kind`."""
    operand, result = shape_of(op.operands[0]), shape_of(op.results[0])
    resized = [dim for dim in range(len(operand)) if operand[dim] != result[dim]]
    rule.add_pointwise(operand, kinds=dict.fromkeys(resized, kind), blocked=resized if blocked else ())


def _before_slice(value: SSAValue) -> SSAValue:
    owner = value.owner
    return owner.operands[0] if isinstance(owner, Operation) and owner.name == "stablehlo.slice" else value


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and (
        isinstance(value.owner, ConstantOp) or value.owner.has_trait(ConstantLike)
    )
