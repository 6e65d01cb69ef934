"""Conversions between element types."""

from small_scope.choices import NoCaseError
from whole_programs.block import Block
from whole_programs.operands import is_exact, is_given, is_moderate, is_small, like, some
from whole_programs.values import COMPLEX, ELEMENTS, INTEGERS, REALS, WHOLE, Numbers, Value, bits

_NARROW = {"i8": 128.0, "ui8": 255.0, "i1": 1.0}
"""Largest number of a narrow type that every floating-point type represents exactly."""


def convert(block: Block) -> Value:
    value = some(block)
    return converted(block, value, block.choices.of([element for element in ELEMENTS if element != value.element]))


def converted(block: Block, value: Value, element: str) -> Value:
    """Convert `value` to `element`. Raises NoCaseError if the result may depend on rounding."""
    if element in (*INTEGERS, "i1"):
        if value.element == COMPLEX or not (is_exact(value) and is_moderate(value)):
            raise NoCaseError
        numbers = WHOLE
    elif value.is_whole:
        if value.element not in _NARROW:
            raise NoCaseError
        numbers = Numbers(_NARROW[value.element], 1.0, given=True)
    else:
        if value.element == COMPLEX:
            raise NoCaseError
        numbers = value.numbers.rounded(element)
    return block.op("stablehlo.convert", (value,), value.shape, element, numbers)


def bitcast(block: Block) -> Value:
    """Bitcast integers, to the same width or to narrower or wider elements."""
    value = some(block, lambda each: each.is_whole or is_given(each), (*INTEGERS, *REALS))
    element = block.choices.of([each for each in INTEGERS if each != value.element])
    before, after = bits(value.element), bits(element)
    shape = value.shape
    if after < before:
        shape = (*shape, before // after)
    elif after > before:
        if not shape or shape[-1] != after // before:
            raise NoCaseError
        shape = shape[:-1]
    return block.op("stablehlo.bitcast_convert", (value,), shape, element)


def complex_(block: Block) -> Value:
    def is_finite(value: Value) -> bool:
        return is_small(value) and value.numbers.finite

    one = some(block, is_finite, ("f32",))
    other = like(block, one, is_finite)
    return block.op("stablehlo.complex", (one, other), one.shape, COMPLEX, one.numbers.or_(other.numbers))


def part(block: Block) -> Value:
    value = some(block, elements=(COMPLEX,))
    return block.op(
        f"stablehlo.{block.choices.of(('real', 'imag'))}", (value,), value.shape, "f32", value.numbers.computed()
    )


CONVERSIONS = [convert, convert, bitcast, complex_, part]
