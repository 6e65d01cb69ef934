"""Reductions, prefix sums and sorts."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from whole_programs.arrays import dtype_of
from whole_programs.block import Block
from whole_programs.elementwise import comparison
from whole_programs.operands import ORDERED, is_exact, is_given, is_moderate, is_small, of, some
from whole_programs.shaping import integers
from whole_programs.values import COMPLEX, INTEGERS, REALS, WHOLE, Numbers, Value, type_text

_INFINITY = {"f32": ("0xFF800000", "0x7F800000"), "bf16": ("0xFF80", "0x7F80")}


@dataclass(frozen=True)
class Combiner:
    """A commutative, associative combination of two numbers: its region, and its neutral element."""

    name: str
    neutral: str
    region: str


def combiner(block: Block, element: str, products: bool = True) -> Combiner:
    """Choose a combiner for these elements."""
    names = ["add", "maximum", "minimum"]
    if element == "i1":
        names = ["and", "or", "xor"]
    elif element in INTEGERS:
        names += ["and", "or", "xor"] + ["multiply"] * products
    elif element == COMPLEX:
        names = ["add"]
    name = block.choices.of(names)
    return Combiner(name, _neutral(name, element), region_of(name, element))


def _neutral(name: str, element: str) -> str:
    if name in ("maximum", "minimum"):
        is_least = name == "maximum"
        if element in REALS:
            return _INFINITY[element][0 if is_least else 1]
        limits = np.iinfo(dtype_of(element))
        return str(limits.min if is_least else limits.max)
    if element == "i1":
        return "true" if name == "and" else "false"
    if element == COMPLEX:
        return "(0.0, 0.0)"
    if element in REALS:
        return "0.0"
    if name == "and":
        return str(np.iinfo(dtype_of(element)).max) if element.startswith("u") else "-1"
    return "1" if name == "multiply" else "0"


def region_of(name: str, element: str) -> str:
    """Return a region that combines two elements by an operation."""
    type_ = type_text((), element)
    return (
        f'{{\n^bb0(%a: {type_}, %b: {type_}):\n  %c = "stablehlo.{name}"(%a, %b) : ({type_}, {type_}) -> {type_}\n'
        f'  "stablehlo.return"(%c) : ({type_}) -> ()\n}}'
    )


def combined(numbers: Numbers, count: int, element: str, way: Combiner) -> Numbers:
    """Return the bounds on `count` numbers combined."""
    if element in (*INTEGERS, "i1"):
        return WHOLE
    return numbers.times(count, element) if way.name == "add" else replace(numbers.computed(), finite=False)


def start(block: Block, way: Combiner, element: str) -> Value:
    """Append the combiner's neutral element, a scalar."""
    return block.scalar(way.neutral, element, Numbers(0.0, 1.0, given=True))


def reduce(block: Block) -> Value:
    value = some(block, is_moderate, rank=1)
    dims = [dim for dim in range(value.rank) if block.choices.below(2)] or [block.choices.below(value.rank)]
    way = combiner(block, value.element)
    count = prod(value.shape[dim] for dim in dims)
    return block.op(
        "stablehlo.reduce",
        (value, start(block, way, value.element)),
        tuple(size for dim, size in enumerate(value.shape) if dim not in dims),
        value.element,
        combined(value.numbers, count, value.element, way),
        f"dimensions = {integers(dims)}",
        [way.region],
    )


def greatest_and_its_place(block: Block) -> list[Value]:
    """Compute an argmax or argmin with its value, as jax lowers it: the first extreme, where NaN counts as extreme."""
    value = some(block, is_exact, ORDERED, rank=1)
    dim = block.choices.below(value.rank)
    places = block.op("stablehlo.iota", (), value.shape, "i32", properties=f"iota_dimension = {dim} : i64")
    is_greatest = block.choices.below(2) == 0
    way = Combiner("", _neutral("maximum" if is_greatest else "minimum", value.element), "")
    first = start(block, way, value.element)
    zero = block.scalar("0", "i32")
    shape = value.shape[:dim] + value.shape[dim + 1 :]
    numbers = replace(value.numbers.computed(), finite=False)
    results = [Value("", shape, value.element, numbers), Value("", shape, "i32")]
    kind = "FLOAT" if value.is_real else "UNSIGNED" if value.element.startswith("u") else "SIGNED"
    return block.ops(
        "stablehlo.reduce",
        (value, places, first, zero),
        results,
        f"dimensions = {integers([dim])}",
        [_first_of_two(value.element, "GT" if is_greatest else "LT", kind)],
    )


def _first_of_two(element: str, direction: str, kind: str) -> str:
    type_ = type_text((), element)
    pair = f"({type_}, {type_}) -> tensor<i1>"
    booleans = "(tensor<i1>, tensor<i1>) -> tensor<i1>"
    places = "(tensor<i32>, tensor<i32>) -> tensor<i1>"
    lines = [
        f'%c = "stablehlo.compare"(%a, %b) <{{{comparison(direction, kind)}}}> : {pair}',
        f'%n = "stablehlo.compare"(%a, %a) <{{{comparison("NE", kind)}}}> : {pair}',
        f'%p = "stablehlo.or"(%c, %n) : {booleans}',
        f'%e = "stablehlo.compare"(%a, %b) <{{{comparison("EQ", kind)}}}> : {pair}',
        f'%l = "stablehlo.compare"(%i, %j) <{{{comparison("LT", "SIGNED")}}}> : {places}',
        f'%t = "stablehlo.and"(%e, %l) : {booleans}',
        f'%q = "stablehlo.or"(%p, %t) : {booleans}',
        f'%v = "stablehlo.select"(%p, %a, %b) : (tensor<i1>, {type_}, {type_}) -> {type_}',
        '%w = "stablehlo.select"(%q, %i, %j) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>',
        f'"stablehlo.return"(%v, %w) : ({type_}, tensor<i32>) -> ()',
    ]
    body = "\n".join(f"  {line}" for line in lines)
    return f"{{\n^bb0(%a: {type_}, %i: tensor<i32>, %b: {type_}, %j: tensor<i32>):\n{body}\n}}"


def sort(block: Block) -> list[Value]:
    """Sort up to three values by the first one."""
    key = some(block, lambda each: each.is_whole or is_given(each), ORDERED, rank=1)
    rest = [some(block, lambda each: each.shape == key.shape) for _ in range(block.choices.of((0, 1, 2)))]
    values = [key, *rest]
    kind = "TOTALORDER" if key.is_real else "UNSIGNED" if key.element.startswith("u") else "SIGNED"
    direction = block.choices.of(("LT", "GT"))
    arguments = ", ".join(
        f"%a{index}: {type_text((), value.element)}, %b{index}: {type_text((), value.element)}"
        for index, value in enumerate(values)
    )
    type_ = type_text((), key.element)
    region = (
        f'{{\n^bb0({arguments}):\n  %c = "stablehlo.compare"(%a0, %b0) <{{{comparison(direction, kind)}}}> : '
        f'({type_}, {type_}) -> tensor<i1>\n  "stablehlo.return"(%c) : (tensor<i1>) -> ()\n}}'
    )
    properties = f"dimension = {block.choices.below(key.rank)} : i64, is_stable = true"
    return block.ops("stablehlo.sort", values, values, properties, [region])


def running(block: Block) -> Value:
    """Combine all prefixes or suffixes along a dimension, such as a cumulative sum."""
    value = some(block, is_small, rank=1)
    dim = block.choices.below(value.rank)
    way = combiner(block, value.element)
    size = value.shape[dim]
    margin = [0, max(size - 1, 0)] if block.choices.below(2) else [max(size - 1, 0), 0]
    window = [max(size, 1) if each == dim else 1 for each in range(value.rank)]
    padding = [margin if each == dim else [0, 0] for each in range(value.rank)]
    return block.op(
        "stablehlo.reduce_window",
        (value, start(block, way, value.element)),
        value.shape,
        value.element,
        combined(value.numbers, size, value.element, way),
        f"window_dimensions = {integers(window)}, padding = dense<{padding}> : tensor<{value.rank}x2xi64>",
        [way.region],
    )


def sums_of_two(block: Block) -> list[Value]:
    """Sum two values in one variadic reduction."""
    one = some(block, is_moderate, (*INTEGERS, *REALS), rank=1)
    element = block.choices.of(
        ("i32", "i8") if one.element == "bf16" else ("i32", "f32", "i8")
    )  # XLA accepts only one floating-point type
    other = of(block, one.shape, element, is_moderate)
    dim = block.choices.below(one.rank)
    values = (one, other)
    zeros = [block.scalar("0.0" if value.is_real else "0", value.element) for value in values]
    shape = one.shape[:dim] + one.shape[dim + 1 :]
    a, b = type_text((), one.element), type_text((), other.element)
    region = (
        f'{{\n^bb0(%a: {a}, %b: {b}, %c: {a}, %d: {b}):\n  %e = "stablehlo.add"(%a, %c) : ({a}, {a}) -> {a}\n'
        f'  %f = "stablehlo.add"(%b, %d) : ({b}, {b}) -> {b}\n  "stablehlo.return"(%e, %f) : ({a}, {b}) -> ()\n}}'
    )
    results = [Value("", shape, value.element, value.numbers.times(one.shape[dim], value.element)) for value in values]
    return block.ops("stablehlo.reduce", (*values, *zeros), results, f"dimensions = {integers([dim])}", [region])


REDUCTIONS = [reduce, reduce, greatest_and_its_place, sort, sort, running, sums_of_two]
