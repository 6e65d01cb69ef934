"""Choice of an operation's operands among the values of a block, or new ones."""

from collections.abc import Callable, Sequence

import numpy as np

from small_scope.choices import NoCaseError
from whole_programs.arrays import dtype_of, random_array
from whole_programs.block import Block
from whole_programs.values import COMPLEX, ELEMENTS, INTEGERS, REALS, Numbers, Shape, Value

Wanted = Callable[[Value], bool]

_SIZES = (3, 5, 7, 1, 2, 4, 6, 8, 9)
_ODD_CHANCE = 25


def anything(value: Value) -> bool:
    """Accept every value."""
    return True


def some(block: Block, wanted: Wanted = anything, elements: Sequence[str] = ELEMENTS, rank: int | None = None) -> Value:
    """Choose a value of one of `elements` and at least `rank`: an existing one, preferably recent, or a new one."""
    found = [
        value for value in block.values if value.element in elements and wanted(value) and value.rank >= (rank or 0)
    ]
    if found and block.choices.below(6):
        return block.choices.of(found[-4:] if block.choices.below(3) else found)
    made = new(block, some_shape(block, rank or 0), block.choices.of(elements))
    if not wanted(made):
        raise NoCaseError
    return made


def like(block: Block, value: Value, wanted: Wanted = anything) -> Value:
    """Choose a value of the same type, possibly `value` itself."""
    return of(block, value.shape, value.element, wanted)


def of(block: Block, shape: Shape, element: str, wanted: Wanted = anything) -> Value:
    """Choose an existing value of this type, or a new one."""
    found = [value for value in block.values if (value.shape, value.element) == (shape, element) and wanted(value)]
    if found and block.choices.below(4):
        return block.choices.of(found)
    made = new(block, shape, element)
    if not wanted(made):
        raise NoCaseError
    return made


def new(block: Block, shape: Shape, element: str) -> Value:
    """Create an argument, a constant or an iota."""
    kind = block.choices.below(5)
    if kind == 1 or block.is_closed:
        array = random_array(shape, element, "small", (block.module.seed, len(block.lines)))
        return block.constant(array, element)
    if kind == 2 and shape and element != "i1" and max(shape) <= 16:
        dim = block.choices.below(len(shape))
        numbers = Numbers(16.0, 1.0, given=True)
        return block.op("stablehlo.iota", (), shape, element, numbers, f"iota_dimension = {dim} : i64")
    return block.argument(shape, element)


def some_size(block: Block, least: int = 0) -> int:
    """Choose the size of a dimension, rarely 0."""
    if not least and block.choices.below(_ODD_CHANCE) == 1:
        return 0
    return block.choices.of([size for size in _SIZES if size >= least])


def some_shape(block: Block, least: int = 0) -> Shape:
    """Choose the shape of an existing value, or a new one, of at least this rank."""
    shapes = [value.shape for value in block.values if value.rank >= least]
    if shapes and block.choices.below(2):
        return block.choices.of(shapes)
    return tuple(some_size(block) for _ in range(block.choices.of([rank for rank in (1, 2, 2, 3) if rank >= least])))


def index(block: Block, shape: Shape, end: int) -> Value:
    """Choose integers, some out of the range [0, end): an existing value, or a new one."""
    element = block.choices.of(("i32", "i32", "i32", "i64", "ui8", "i8"))
    found = [value for value in block.values if value.is_integer and value.shape == shape]
    if found and block.choices.below(2):
        return block.choices.of(found)
    generator = np.random.default_rng((block.module.seed, len(block.lines), len(block.module.inputs)))
    least = 0 if element.startswith("u") else -2
    array = generator.integers(least, end + 3, shape).astype(dtype_of(element))
    if block.is_closed or block.choices.below(3) == 1:
        return block.constant(array, element)
    return block.argument(shape, element, array)


def is_exact(value: Value) -> bool:
    """Return whether the elements do not depend on the order of computation."""
    return value.numbers.exact


def is_given(value: Value) -> bool:
    """Return whether every bit of the elements is an argument's or a constant's."""
    return value.numbers.given


def is_small(value: Value) -> bool:
    """Return whether products with other small values stay small enough."""
    return value.numbers.largest <= 64 and value.numbers.error <= 1e-2


def is_moderate(value: Value) -> bool:
    """Return whether sums with other moderate values stay small enough."""
    return value.numbers.largest <= 1e6


NUMBERS = (*INTEGERS, *REALS, COMPLEX)
ORDERED = (*INTEGERS, *REALS)
