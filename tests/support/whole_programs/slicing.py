"""Slices and updates at static and dynamic indices, in bounds and out of bounds."""

from whole_programs.block import Block
from whole_programs.operands import index, of, some
from whole_programs.shaping import integers
from whole_programs.values import Shape, Value


def slice_(block: Block) -> Value:
    value = some(block, rank=1)
    starts, limits, strides = list[int](), list[int](), list[int]()
    for size in value.shape:
        is_whole = block.choices.below(3) == 0
        starts.append(0 if is_whole else block.choices.below(size + 1))
        limits.append(size if is_whole else block.choices.of(range(size, starts[-1] - 1, -1)))
        strides.append(1 if is_whole else block.choices.of((1, 1, 2, 3)))
    shape = tuple(len(range(*each)) for each in zip(starts, limits, strides, strict=True))
    properties = (
        f"start_indices = {integers(starts)}, limit_indices = {integers(limits)}, strides = {integers(strides)}"
    )
    return block.op("stablehlo.slice", (value,), shape, value.element, value.numbers, properties)


def dynamic_slice(block: Block) -> Value:
    value = some(block, rank=1)
    sizes = _sizes(block, value.shape)
    return block.op(
        "stablehlo.dynamic_slice",
        (value, *_starts(block, value.shape)),
        sizes,
        value.element,
        value.numbers,
        f"slice_sizes = {integers(list(sizes))}",
    )


def dynamic_update_slice(block: Block) -> Value:
    value = some(block, rank=1)
    update = of(block, _sizes(block, value.shape), value.element)
    operands = (value, update, *_starts(block, value.shape))
    numbers = value.numbers.or_(update.numbers)
    return block.op("stablehlo.dynamic_update_slice", operands, value.shape, value.element, numbers)


def _sizes(block: Block, shape: Shape) -> Shape:
    return tuple(
        block.choices.of((size, max(size // 2, 1) if size else 0, min(size, 1), min(size, 3))) for size in shape
    )


def _starts(block: Block, shape: Shape) -> list[Value]:
    starts = [index(block, (), size) for size in shape]
    return [of(block, (), starts[0].element) if start.element != starts[0].element else start for start in starts]


SLICING = [slice_, slice_, dynamic_slice, dynamic_update_slice]
