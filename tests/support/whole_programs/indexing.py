"""Gathers and scatters of every form, with indices in and out of bounds, some repeated."""

from dataclasses import dataclass
from math import prod

from small_scope.choices import NoCaseError
from whole_programs.block import LARGEST, Block
from whole_programs.operands import ORDERED, index, is_small, of, some
from whole_programs.reductions import combined, combiner
from whole_programs.shaping import integers
from whole_programs.values import REALS, Shape, Value


@dataclass(frozen=True)
class _Places:
    """Dimension numbers and indices of a gather or scatter."""

    indices: Value
    sizes: Shape
    collapsed: list[int]
    operand_batch: list[int]
    indices_batch: list[int]
    mapped: list[int]
    vector: int
    windows: list[int]
    """The dimensions of the result that are window dimensions."""
    result: Shape


def _places(block: Block, operand: Value) -> _Places:
    choices, shape = block.choices, operand.shape
    dims = list(range(operand.rank))
    operand_batch = [choices.of(dims)] if operand.rank > 1 and choices.below(4) == 1 else []
    others = [dim for dim in dims if dim not in operand_batch]
    mapped = [dim for dim in others if choices.below(2)] or others[:1]
    if len(mapped) > 1 and choices.below(2):
        mapped.reverse()
    sizes = list(shape)
    for dim in dims:
        if dim in operand_batch or (dim in mapped and choices.below(2)):
            sizes[dim] = 1
        elif choices.below(3) == 1:
            sizes[dim] = choices.of(range(1, shape[dim] + 1))
    if any(size > whole for size, whole in zip(sizes, shape, strict=True)):
        raise NoCaseError
    collapsed = [dim for dim in mapped if sizes[dim] == 1 and choices.below(3)]
    batches = [choices.of((3, 5, 1, 4, 7, 0)) for _ in range(choices.of((1, 0, 2)))]
    indices_batch = list[int]()
    for dim in operand_batch:
        indices_batch = [choices.below(len(batches) + 1)]
        batches.insert(indices_batch[0], shape[dim])
    vector = choices.of((len(batches), *range(len(batches))))
    is_scalar = len(mapped) == 1 and vector == len(batches) and choices.below(2) == 1
    indices_shape = tuple(batches if is_scalar else [*batches[:vector], len(mapped), *batches[vector:]])
    indices_batch = [dim + (dim >= vector) for dim in indices_batch]
    window = [size for dim, size in enumerate(sizes) if dim not in collapsed and dim not in operand_batch]
    result, windows = list(batches), list[int]()
    place = len(batches) if choices.below(2) else choices.below(len(batches) + 1)
    result[place:place] = window
    windows = list(range(place, place + len(window)))
    if prod(result) > LARGEST:
        raise NoCaseError
    indices = index(block, indices_shape, max((shape[dim] for dim in mapped), default=1))
    if choices.below(2):
        indices = block.constrained(indices)
    return _Places(
        indices, tuple(sizes), sorted(collapsed), operand_batch, indices_batch, mapped, vector, windows, tuple(result)
    )


def gather(block: Block) -> Value:
    operand = some(block, rank=1)
    places = _places(block, operand)
    numbers = (
        f"offset_dims = {places.windows}, collapsed_slice_dims = {places.collapsed}, "
        f"operand_batching_dims = {places.operand_batch}, start_indices_batching_dims = {places.indices_batch}, "
        f"start_index_map = {places.mapped}, index_vector_dim = {places.vector}"
    )
    properties = f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {integers(list(places.sizes))}"
    return block.op(
        "stablehlo.gather", (operand, places.indices), places.result, operand.element, operand.numbers, properties
    )


def scatter(block: Block) -> Value:
    """Scatter with a commutative, associative update."""
    operand = some(block, is_small, ORDERED, rank=1)
    places = _places(block, operand)
    updates = of(block, places.result, operand.element, is_small)
    way = combiner(block, operand.element, products=operand.element not in REALS)
    inserted = places.collapsed
    numbers = (
        f"update_window_dims = {places.windows}, inserted_window_dims = {inserted}, "
        f"input_batching_dims = {places.operand_batch}, scatter_indices_batching_dims = {places.indices_batch}, "
        f"scatter_dims_to_operand_dims = {places.mapped}, index_vector_dim = {places.vector}"
    )
    both = operand.numbers.or_(updates.numbers)
    return block.op(
        "stablehlo.scatter",
        (operand, places.indices, updates),
        operand.shape,
        operand.element,
        combined(both, 1 + prod(places.result), operand.element, way),
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>",
        [way.region],
    )


INDEXING = [gather, gather, scatter, scatter]
