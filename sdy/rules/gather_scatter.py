"""Rules of gather and scatter.

Both have three kinds of tensors: the input, the start indices, and the slices that are read from the input or written
to it. Each dimension of the slices is either a window dimension, which corresponds to a dimension of the input, or a
batch dimension, which corresponds to a dimension of the indices; an explicit batching dimension corresponds to both.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Block, Operation

from sdy.ir.shapes import shape_of
from sdy.rule import FactorKind
from sdy.rules.builder import NEED_REPLICATION, PASS_THROUGH, REDUCTION, RuleBuilder
from sdy.rules.registry import register
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.elementwise import AddOp, AndOp, MaxOp, MinOp, MulOp, OrOp

if TYPE_CHECKING:
    from sdy.stablehlo.gather import GatherOp
    from sdy.stablehlo.scatter import ScatterOp


class DimNumbers(NamedTuple):
    """The dimension numbers of gather and scatter under common names."""

    window_dims: Sequence[int]
    """Window dimensions of the slices."""
    collapsed_dims: Sequence[int]
    """Dimensions of the input that the slices omit, since each slice has size 1 along them."""
    input_batching_dims: Sequence[int]
    indices_batching_dims: Sequence[int]
    index_vector_dim: int


class SliceDim(NamedTuple):
    """A dimension of the slices, with the corresponding dimensions of input and indices, if any."""

    dim: int
    input_dim: int | None
    indices_dim: int | None


@register("stablehlo.gather")
def gather(op: "GatherOp", rule: RuleBuilder) -> None:
    """Add the factors of a gather.

    Along dimensions in which each slice has a single element, the factor of the operand is a reduction factor: each
    device looks up the elements in its own shard, and an all-reduce adds those of the other devices. Larger windows
    that do not span the dimension require replication, since they may cross the boundary between shards.
    """
    operand, indices, result = shape_of(op.operand), shape_of(op.start_indices), shape_of(op.result)
    numbers, slice_dims = gathered_dims(op)
    for dim, input_dim, indices_dim in slice_dims:
        size = result[dim]
        if input_dim is None or indices_dim is not None or operand[input_dim] == size:
            rule.add(size, _places({0: input_dim, 1: indices_dim}), {0: dim})
        elif size == 1:
            rule.add(operand[input_dim], {0: input_dim}, {}, REDUCTION)
            rule.add(size, {}, {0: dim}, NEED_REPLICATION)
        else:
            rule.add(operand[input_dim], {0: input_dim}, {0: dim}, NEED_REPLICATION, blocked=True)
    for dim in numbers.collapsed_dims:
        rule.add(operand[dim], {0: dim}, {}, NEED_REPLICATION if operand[dim] == 1 else REDUCTION)
    if numbers.index_vector_dim < len(indices):
        rule.add(indices[numbers.index_vector_dim], {1: numbers.index_vector_dim}, {}, NEED_REPLICATION)


def gathered_dims(op: "GatherOp") -> tuple[DimNumbers, Iterator[SliceDim]]:
    """Return the dimension numbers of `op`, and the corresponding dimensions of each dimension of its result."""
    dims = op.dimension_numbers.data
    numbers = DimNumbers(
        dims.offset_dims,
        dims.collapsed_slice_dims,
        dims.operand_batching_dims,
        dims.start_indices_batching_dims,
        dims.index_vector_dim,
    )
    return numbers, _slice_dims(numbers, shape_of(op.operand), shape_of(op.start_indices), shape_of(op.result))


@register("stablehlo.scatter", looks_around=True)
def scatter(op: "ScatterOp", rule: RuleBuilder) -> None:
    """Add the factors of a scatter: inputs, indices, updates -> results.

    Batch dimensions of the updates are reduction factors if the update computation is a suitable reduction: each device
    applies its own updates to the full input, and the results are combined. Otherwise they require replication.
    """
    dims = op.scatter_dimension_numbers.data
    numbers = DimNumbers(
        dims.update_window_dims,
        dims.inserted_window_dims,
        dims.input_batching_dims,
        dims.scatter_indices_batching_dims,
        dims.index_vector_dim,
    )
    count = len(op.inputs)
    input_, indices, update = shape_of(op.inputs[0]), shape_of(op.scatter_indices), shape_of(op.updates[0])

    def add(
        size: int, kind: FactorKind, input_dim: int | None, indices_dim: int | None, update_dim: int | None
    ) -> None:
        dims_of_operands = [input_dim] * count + [indices_dim] + [update_dim] * count
        rule.add(
            size, _places(dict(enumerate(dims_of_operands))), _places(dict.fromkeys(range(count), input_dim)), kind
        )

    batch_kind = REDUCTION if _is_reduction(op) else NEED_REPLICATION
    for dim, input_dim, indices_dim in _slice_dims(numbers, input_, indices, update):
        size = update[dim]
        if input_dim is None:
            add(size, batch_kind, None, indices_dim, dim)
        elif indices_dim is not None or input_[input_dim] == size:
            add(size, PASS_THROUGH, input_dim, indices_dim, dim)
        else:
            add(input_[input_dim], NEED_REPLICATION, input_dim, None, None)
            add(size, NEED_REPLICATION, None, None, dim)
    for dim in numbers.collapsed_dims:
        add(input_[dim], PASS_THROUGH, dim, None, None)
    if numbers.index_vector_dim < len(indices):
        add(indices[numbers.index_vector_dim], NEED_REPLICATION, None, numbers.index_vector_dim, None)


def _slice_dims(
    numbers: DimNumbers, input_: Sequence[int], indices: Sequence[int], slices: Sequence[int]
) -> Iterator[SliceDim]:
    """Yield the corresponding dimensions of each dimension of the slices.

    Window dimensions are in the order of the input's dimensions, batch dimensions in the order of the indices'.
    """
    outside_window = {*numbers.collapsed_dims, *numbers.input_batching_dims}
    window = (dim for dim in range(len(input_)) if dim not in outside_window)
    batch = (dim for dim in range(len(indices)) if dim != numbers.index_vector_dim)
    explicit = dict(zip(numbers.indices_batching_dims, numbers.input_batching_dims, strict=True))
    for dim in range(len(slices)):
        if dim in numbers.window_dims:
            yield SliceDim(dim, next(window), None)
        else:
            indices_dim = next(batch)
            yield SliceDim(dim, explicit.get(indices_dim), indices_dim)


def _places(dims: dict[int, int | None]) -> dict[int, int]:
    return {tensor: dim for tensor, dim in dims.items() if dim is not None}


def _is_reduction(op: "ScatterOp") -> bool:
    """Return whether all results are updated by the same commutative, associative operation on old and new element."""
    blocks = op.update_computation.blocks
    if not blocks or not isinstance(terminator := blocks[0].last_op, ReturnOp):
        return False
    block, count = blocks[0], len(op.inputs)
    if len(block.args) != 2 * count or len(terminator.operands) != count:
        return False
    updates = [value.owner for value in terminator.operands]
    return len({type(update) for update in updates}) == 1 and all(
        isinstance(update, Operation) and _combines(update, block, index, index + count)
        for index, update in enumerate(updates)
    )


def _combines(update: Operation, block: Block, old: int, new: int) -> bool:
    """Return whether `update` reduces the block's arguments `old` and `new`; logical operations need booleans."""
    is_boolean = update.results[0].type == TensorType(i1, [])
    reductions = (AddOp, MulOp, MaxOp, MinOp, AndOp, OrOp) if is_boolean else (AddOp, MulOp, MaxOp, MinOp)
    return isinstance(update, reductions) and set(update.operands) == {block.args[old], block.args[new]}
