"""Rules of the `tensor` dialect."""

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, PASS_THROUGH, PERMUTATION, RuleBuilder
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import register, register_without_rule
from sdy.rules.reshape import add_reshaped

if TYPE_CHECKING:
    from xdsl.dialects.tensor import ConcatOp, ExtractSliceOp, InsertSliceOp, PadOp, ReshapeOp

register("tensor.cast", "tensor.bitcast", elementwise=True)(pointwise)
register("tensor.splat", "tensor.insert")(pointwise)
register_without_rule("tensor.dim", "tensor.empty", "tensor.extract", "tensor.from_elements", "tensor.generate")


@register("tensor.expand_shape", "tensor.collapse_shape")
def reassociate(op: Operation, rule: RuleBuilder) -> None:
    """Add the factors of a reshape."""
    add_reshaped(rule, shape_of(op.operands[0]), shape_of(op.results[0]))


@register("tensor.reshape")
def reshape(op: "ReshapeOp", rule: RuleBuilder) -> None:
    """Add the factors of a reshape; the operand with the sizes requires replication."""
    add_reshaped(rule, shape_of(op.source), shape_of(op.result))
    rule.add(len(shape_of(op.result)), {1: 0}, {}, NEED_REPLICATION)


@register("tensor.concat")
def concat(op: "ConcatOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; the concatenated dimension requires replication."""
    dim = op.dim.value.data
    rule.add_pointwise(shape_of(op.result), kinds={dim: NEED_REPLICATION}, skipped=(dim,) if rule.conservative else ())


@register("tensor.pad")
def pad(op: "PadOp", rule: RuleBuilder) -> None:
    """Add pointwise factors; those of dimensions that change their size are permutation factors."""
    for dim, (size, padded) in enumerate(zip(shape_of(op.source), shape_of(op.result), strict=True)):
        moves = size != padded
        kind = PERMUTATION if moves else PASS_THROUGH
        rule.add(size, {0: dim}, {0: dim}, kind, blocked=moves and rule.conservative)


@register("tensor.extract_slice")
def extract_slice(op: "ExtractSliceOp", rule: RuleBuilder) -> None:
    """Add the factors of a slice; dimensions that change their size are permutation factors if the offset is static.

    With a dynamic offset, they require replication.
    """
    source, slice_ = shape_of(op.source), shape_of(op.result)
    for dim, slice_dim in enumerate(_slice_dims(op, slice_)):
        places = {} if slice_dim is None else {0: slice_dim}
        if slice_dim is not None and slice_[slice_dim] == source[dim]:
            rule.add(source[dim], {0: dim}, places)
        elif op.static_offsets.get_values()[dim] == DYNAMIC_INDEX:
            rule.add(source[dim], {0: dim}, places, NEED_REPLICATION, blocked=True)
        else:
            rule.add(source[dim], {0: dim}, places, PERMUTATION, blocked=rule.conservative)


@register("tensor.insert_slice")
def insert_slice(op: "InsertSliceOp", rule: RuleBuilder) -> None:
    """Add the factors of an insertion.

    Along a partially updated dimension, `dest` and result can be sharded: each device updates its own shard. The slice
    then requires replication, unless the offset is static.
    """
    slice_, dest = shape_of(op.source), shape_of(op.dest)
    for dim, slice_dim in enumerate(_slice_dims(op, slice_)):
        if slice_dim is not None and slice_[slice_dim] == dest[dim]:
            rule.add(dest[dim], {0: slice_dim, 1: dim}, {0: dim})
            continue
        rule.add(dest[dim], {1: dim}, {0: dim})
        if slice_dim is not None:
            known = op.static_offsets.get_values()[dim] != DYNAMIC_INDEX
            rule.add(slice_[slice_dim], {0: slice_dim}, {}, PASS_THROUGH if known else NEED_REPLICATION)


def _slice_dims(op: "ExtractSliceOp | InsertSliceOp", slice_: tuple[int, ...]) -> list[int | None]:
    """Return the slice's dimension for each dimension of the full tensor; None for dropped dimensions of size 1.

    As in MLIR, the first dimensions of size 1 that can be dropped are.
    """
    sizes = op.static_sizes.get_values()
    num_dropped = len(sizes) - len(slice_)
    dims: list[int | None] = []
    kept = 0
    for size in sizes:
        if num_dropped and size == 1 and (kept == len(slice_) or slice_[kept] != 1):
            dims.append(None)
            num_dropped -= 1
        else:
            dims.append(kept)
            kept += 1
    return dims
