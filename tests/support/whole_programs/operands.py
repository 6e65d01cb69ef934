"""The operands that an operation wants: found among the values there are, or made."""

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
    """Every value is wanted."""
    return True


def some(block: Block, wanted: Wanted = anything, elements: Sequence[str] = ELEMENTS, rank: int | None = None) -> Value:
    """A value of such elements and at least such a rank: one of those there are, rather a late one, or a new one."""
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
    """A value of the same type, maybe `value` itself."""
    return of(block, value.shape, value.element, wanted)


def of(block: Block, shape: Shape, element: str, wanted: Wanted = anything) -> Value:
    """A value of this type: one of those there are, or a new one."""
    found = [value for value in block.values if (value.shape, value.element) == (shape, element) and wanted(value)]
    if found and block.choices.below(4):
        return block.choices.of(found)
    made = new(block, shape, element)
    if not wanted(made):
        raise NoCaseError
    return made


def new(block: Block, shape: Shape, element: str) -> Value:
    """An argument, or a constant, or a value broadcast."""
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
    """A size of a dimension, 0 once in a while."""
    if not least and block.choices.below(_ODD_CHANCE) == 1:
        return 0
    return block.choices.of([size for size in _SIZES if size >= least])


def some_shape(block: Block, least: int = 0) -> Shape:
    """The shape of a value there is, or a new one, of at least this rank."""
    shapes = [value.shape for value in block.values if value.rank >= least]
    if shapes and block.choices.below(2):
        return block.choices.of(shapes)
    return tuple(some_size(block) for _ in range(block.choices.of([rank for rank in (1, 2, 2, 3) if rank >= least])))


def index(block: Block, shape: Shape, end: int) -> Value:
    """Integers, of which some are outside of the numbers from 0 to `end`: those of a value there is, or new ones."""
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
    """Whether its numbers do not depend on the order in which they were computed."""
    return value.numbers.exact


def is_given(value: Value) -> bool:
    """Whether every bit of it is that of an argument."""
    return value.numbers.given


def is_small(value: Value) -> bool:
    """Whether it can be multiplied with another such without becoming huge."""
    return value.numbers.largest <= 64 and value.numbers.error <= 1e-2


def is_moderate(value: Value) -> bool:
    """Whether it can be added to others without becoming huge."""
    return value.numbers.largest <= 1e6


NUMBERS = (*INTEGERS, *REALS, COMPLEX)
ORDERED = (*INTEGERS, *REALS)
