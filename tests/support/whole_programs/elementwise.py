"""Elementwise operations."""

import math
from collections.abc import Callable

import numpy as np

from whole_programs.block import Block
from whole_programs.operands import (
    is_exact,
    is_given,
    is_moderate,
    is_small,
    like,
    of,
    some,
)
from whole_programs.values import COMPLEX, INTEGERS, REALS, Numbers, Value

_OF_INTEGERS = (
    "add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide", "remainder",
    "shift_left", "shift_right_arithmetic", "shift_right_logical",
)  # fmt: skip
_OF_BOOLEANS = ("and", "or", "xor", "maximum", "minimum")


def of_two_integers(block: Block) -> Value:
    one = some(block, elements=(*INTEGERS, "i1"))
    name = block.choices.of(_OF_BOOLEANS if one.element == "i1" else _OF_INTEGERS)
    other = like(block, one)
    if name in ("divide", "remainder"):
        other = _small_and_odd(block, other)
    return block.op(f"stablehlo.{name}", (one, other), one.shape, one.element)


def _small_and_odd(block: Block, value: Value) -> Value:
    """Mask integers to small odd numbers: XLA crashes when it folds a division by 0, or of the minimum by -1."""
    for name, bits in (("and", 7), ("or", 1)):
        constant = block.constant(np.full(value.shape, bits), value.element)
        value = block.op(f"stablehlo.{name}", (value, constant), value.shape, value.element)
    return value


def of_an_integer(block: Block) -> Value:
    value = some(block, elements=(*INTEGERS, "i1"))
    names = ("not",) if value.element == "i1" else ("not", "sign", "negate", "abs", "popcnt", "count_leading_zeros")
    names = tuple(name for name in names if name not in ("sign", "negate", "abs") or not value.element.startswith("u"))
    return block.op(f"stablehlo.{block.choices.of(names)}", (value,), value.shape, value.element)


def sum_of_two(block: Block) -> Value:
    one = some(block, is_moderate, (*REALS, COMPLEX))
    other = like(block, one, is_moderate)
    numbers = Numbers(
        one.numbers.largest + other.numbers.largest,
        min(one.numbers.grain, other.numbers.grain),
        one.numbers.error + other.numbers.error,
        finite=one.numbers.finite and other.numbers.finite,
    )
    name = block.choices.of(("add", "subtract"))
    return block.op(f"stablehlo.{name}", (one, other), one.shape, one.element, numbers.rounded(one.element))


def product_of_two(block: Block) -> Value:
    one = some(block, is_small, (*REALS, COMPLEX))
    other = like(block, one, is_small)
    numbers = product(one.numbers, other.numbers, one.element).rounded(one.element)
    return block.op("stablehlo.multiply", (one, other), one.shape, one.element, numbers)


def product(one: Numbers, other: Numbers, element: str) -> Numbers:
    """Return the bounds on products before rounding."""
    terms = 2 if element == COMPLEX else 1
    error = one.error * other.largest + other.error * one.largest + one.error * other.error
    largest, is_finite = terms * one.largest * other.largest, one.finite and other.finite
    return Numbers(largest, one.grain * other.grain, terms * error, finite=is_finite)


def greater_or_less(block: Block) -> Value:
    one = some(block, elements=REALS)
    other = like(block, one)
    name = block.choices.of(("maximum", "minimum"))
    return block.op(
        f"stablehlo.{name}", (one, other), one.shape, one.element, one.numbers.or_(other.numbers).computed()
    )


def quotient(block: Block) -> Value:
    """Divide by numbers whose zeros have a known sign."""
    one, other = (
        (value := some(block, is_small, REALS)),
        like(block, value, lambda each: is_given(each) and is_small(each)),
    )
    largest = one.numbers.largest / other.numbers.grain
    numbers = Numbers(largest, 0.0, one.numbers.error / other.numbers.grain, finite=False).rounded(one.element, 2)
    return block.op("stablehlo.divide", (one, other), one.shape, one.element, numbers)


_SMOOTH: dict[str, tuple[Callable[[float], float], float]] = {
    "tanh": (lambda _: 1.0, 1.0),
    "logistic": (lambda _: 1.0, 0.25),
    "sine": (lambda _: 1.0, 1.0),
    "cosine": (lambda _: 1.0, 1.0),
    "exponential": (math.exp, math.exp(4)),
    "exponential_minus_one": (math.exp, math.exp(4)),
}
"""For each function of arguments of at most 4, the largest result and the largest slope."""


def smooth(block: Block) -> Value:
    value = some(block, lambda each: each.numbers.largest <= 4, REALS)
    name = block.choices.of([*_SMOOTH])
    largest, slope = _SMOOTH[name]
    known = value.numbers
    numbers = Numbers(largest(known.largest), 0.0, slope * known.error, finite=known.finite).rounded(value.element, 4)
    return block.op(f"stablehlo.{name}", (value,), value.shape, value.element, numbers)


def of_a_number(block: Block) -> Value:
    """Append a function that changes only the sign of numbers."""
    value = some(block, elements=(*REALS, COMPLEX))
    if value.element == COMPLEX:
        return block.op("stablehlo.negate", (value,), value.shape, value.element, value.numbers.computed())
    name = block.choices.of(("negate", "abs"))
    return block.op(f"stablehlo.{name}", (value,), value.shape, value.element, value.numbers.computed())


def step(block: Block) -> Value:
    """Append a discontinuous function, on exact arguments."""
    value = some(block, lambda each: is_exact(each) and is_moderate(each), REALS)
    name = block.choices.of(("floor", "ceil", "round_nearest_even", "round_nearest_afz", "sign", "sqrt"))
    if name == "sqrt":
        numbers = Numbers(max(1.0, value.numbers.largest), 0.0, finite=False).rounded(value.element, 4)
    else:
        numbers = Numbers(math.ceil(value.numbers.largest), 1.0, finite=value.numbers.finite).rounded(value.element)
    return block.op(f"stablehlo.{name}", (value,), value.shape, value.element, numbers)


def is_finite(block: Block) -> Value:
    value = some(block, elements=REALS)
    return block.op("stablehlo.is_finite", (value,), value.shape, "i1")


def compare(block: Block) -> Value:
    one = some(block, is_exact)
    other = like(block, one, is_exact)
    direction = block.choices.of(("LT", "EQ", "NE", "GE", "GT", "LE"))
    if one.element == COMPLEX:
        direction = block.choices.of(("EQ", "NE"))
    kind = "SIGNED"
    if one.element in (*REALS, COMPLEX):
        total = one.is_real and is_given(one) and is_given(other)
        kind = block.choices.of(("FLOAT", "TOTALORDER")) if total else "FLOAT"
    elif one.element == "i1" or one.element.startswith("u"):
        kind = "UNSIGNED"
    return block.op("stablehlo.compare", (one, other), one.shape, "i1", properties=comparison(direction, kind))


def comparison(direction: str, kind: str) -> str:
    """Return the properties of a comparison."""
    return (
        f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
        f"compare_type = #stablehlo<comparison_type {kind}>"
    )


def select(block: Block) -> Value:
    one = some(block)
    other = like(block, one)
    which = of(block, block.choices.of((one.shape, one.shape, ())), "i1")
    numbers = one.numbers.or_(other.numbers)
    return block.op("stablehlo.select", (which, one, other), one.shape, one.element, numbers)


def clamp(block: Block) -> Value:
    value = some(block, elements=(*INTEGERS, *REALS))
    bounds = [of(block, block.choices.of((value.shape, ())), value.element) for _ in range(2)]
    numbers = value.numbers.or_(*(bound.numbers for bound in bounds)).computed()
    return block.op("stablehlo.clamp", (bounds[0], value, bounds[1]), value.shape, value.element, numbers)


def barrier(block: Block) -> list[Value]:
    values = [some(block) for _ in range(block.choices.of((1, 2, 3)))]
    return block.ops("stablehlo.optimization_barrier", values, values)


ELEMENTWISE = [
    of_two_integers, of_two_integers, of_an_integer, sum_of_two, sum_of_two, product_of_two, greater_or_less, quotient,
    smooth, of_a_number, step, is_finite, compare, select, clamp, barrier,
]  # fmt: skip
