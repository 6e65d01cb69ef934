"""Operations that only move elements: reshapes, transposes, broadcasts, pads and the like."""

from math import prod

from small_scope.choices import NoCaseError
from whole_programs.block import LARGEST, Block
from whole_programs.operands import of, some, some_size
from whole_programs.values import Value


def integers(numbers: list[int]) -> str:
    """Return an integer array attribute."""
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def reshape(block: Block) -> Value:
    value = some(block)
    rest, shape = prod(value.shape), list[int]()
    for _ in range(block.choices.below(3)):
        shape.append(block.choices.of([size for size in range(1, max(rest, 1) + 1) if rest % size == 0]))
        rest //= shape[-1]
    shape = [*shape, rest] if rest != 1 or block.choices.below(2) else shape
    return block.op("stablehlo.reshape", (value,), tuple(shape), value.element, value.numbers)


def transpose(block: Block) -> Value:
    value = some(block, rank=1)
    order, left = list[int](), list(range(value.rank))
    while left:
        order.append(left.pop(block.choices.below(len(left))))
    shape = tuple(value.shape[dim] for dim in order)
    properties = f"permutation = {integers(order)}"
    return block.op("stablehlo.transpose", (value,), shape, value.element, value.numbers, properties)


def broadcast(block: Block) -> Value:
    """Insert dimensions into a value's shape, or expand a dimension of size 1."""
    value = some(block, lambda each: each.rank <= 2)
    shape, dims = list(value.shape), list(range(value.rank))
    for dim, size in enumerate(shape):
        if size == 1 and block.choices.below(2):
            shape[dim] = some_size(block)
    for _ in range(block.choices.of((1, 0, 2))):
        place = block.choices.below(len(shape) + 1)
        shape.insert(place, some_size(block))
        dims = [dim + (dim >= place) for dim in dims]
    if prod(shape) > LARGEST:
        raise NoCaseError
    properties = f"broadcast_dimensions = {integers(dims)}"
    return block.op("stablehlo.broadcast_in_dim", (value,), tuple(shape), value.element, value.numbers, properties)


def reverse(block: Block) -> Value:
    value = some(block, rank=1)
    dims = [dim for dim in range(value.rank) if block.choices.below(2)]
    properties = f"dimensions = {integers(dims)}"
    return block.op("stablehlo.reverse", (value,), value.shape, value.element, value.numbers, properties)


def concatenate(block: Block) -> Value:
    first = some(block, rank=1)
    dim = block.choices.below(first.rank)
    values = [first]
    for _ in range(block.choices.of((1, 2))):
        shape = list(first.shape)
        if block.choices.below(2):
            shape[dim] = some_size(block)
        values.append(of(block, tuple(shape), first.element))
    shape = list(first.shape)
    shape[dim] = sum(value.shape[dim] for value in values)
    if prod(shape) > LARGEST:
        raise NoCaseError
    numbers = first.numbers.or_(*(value.numbers for value in values))
    return block.op("stablehlo.concatenate", values, tuple(shape), first.element, numbers, f"dimension = {dim} : i64")


def pad(block: Block) -> Value:
    value = some(block, rank=1)
    filler = of(block, (), value.element)
    low, high, interior = ([block.choices.of(options) for _ in value.shape] for options in _MARGINS)
    shape = tuple(
        size + max(size - 1, 0) * between + before + after
        for size, before, after, between in zip(value.shape, low, high, interior, strict=True)
    )
    if min(shape) < 0 or prod(shape) > LARGEST:
        raise NoCaseError
    properties = (
        f"edge_padding_low = {integers(low)}, edge_padding_high = {integers(high)}, "
        f"interior_padding = {integers(interior)}"
    )
    return block.op(
        "stablehlo.pad", (value, filler), shape, value.element, value.numbers.or_(filler.numbers), properties
    )


_MARGINS = ((0, 1, -1, 3, -2), (0, 0, 2, -1, -3), (0, 0, 1, 2))


def get_size(block: Block) -> Value:
    value = some(block, rank=1)
    properties = f"dimension = {block.choices.below(value.rank)} : i64"
    return block.op("stablehlo.get_dimension_size", (value,), (), "i32", properties=properties)


SHAPING = [reshape, reshape, transpose, broadcast, broadcast, reverse, concatenate, concatenate, pad, pad, get_size]
