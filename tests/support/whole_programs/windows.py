"""Windowed operations of every size, stride, dilation and padding, also negative."""

from dataclasses import dataclass
from math import prod

from small_scope.choices import NoCaseError
from whole_programs.block import LARGEST, Block
from whole_programs.elementwise import comparison, product
from whole_programs.operands import is_exact, is_small, of, some
from whole_programs.reductions import combined, combiner, region_of, start
from whole_programs.shaping import integers
from whole_programs.values import COMPLEX, INTEGERS, REALS, Numbers, Value, type_text


@dataclass(frozen=True)
class _Window:
    """A window along one dimension."""

    size: int
    stride: int
    base: int
    spread: int
    low: int
    high: int
    count: int


def _window(block: Block, size: int, is_plain: bool = False) -> _Window:
    choices = block.choices
    if is_plain:
        return _Window(1, 1, 1, 1, 0, 0, size)
    window, stride = choices.of((2, 1, 3, 4)), choices.of((1, 2, 3))
    base, spread = choices.of((1, 1, 2)), choices.of((1, 1, 2))
    low, high = choices.of((0, 1, 2, -1)), choices.of((0, 1, 3, -1))
    line = (max(size - 1, 0) * base + (size > 0)) + low + high
    covered = (window - 1) * spread + 1
    if line < 0:
        raise NoCaseError
    return _Window(window, stride, base, spread, low, high, (line - covered) // stride + 1 if line >= covered else 0)


def reduce_window(block: Block) -> Value:
    value = some(block, is_small, rank=1)
    windows = [_window(block, size, block.choices.below(2) == 1) for size in value.shape]
    shape = tuple(each.count for each in windows)
    if prod(shape) > LARGEST:
        raise NoCaseError
    way = combiner(block, value.element)
    properties = (
        f"window_dimensions = {integers([each.size for each in windows])}, "
        f"window_strides = {integers([each.stride for each in windows])}, "
        f"base_dilations = {integers([each.base for each in windows])}, "
        f"window_dilations = {integers([each.spread for each in windows])}, "
        f"padding = dense<{[[each.low, each.high] for each in windows]}> : tensor<{value.rank}x2xi64>"
    )
    numbers = combined(value.numbers, prod(each.size for each in windows), value.element, way)
    operands = (value, start(block, way, value.element))
    return block.op("stablehlo.reduce_window", operands, shape, value.element, numbers, properties, [way.region])


def select_and_scatter(block: Block) -> Value:
    """Apply the gradient of a max pool."""
    value = some(block, lambda each: is_exact(each) and is_small(each), ("i32", "f32"), rank=1)
    windows, shape = list[tuple[int, int, int, int]](), list[int]()
    for size in value.shape:
        is_plain = block.choices.below(2) == 1
        window, stride = (1, 1) if is_plain else (block.choices.of((1, 2, 3)), block.choices.of((1, 2, 3)))
        low, high = (0, 0) if is_plain else (block.choices.of((0, 1)), block.choices.of((0, 1)))
        if low >= window or high >= window or size + low + high < window:
            raise NoCaseError
        windows.append((window, stride, low, high))
        shape.append((size + low + high - window) // stride + 1)
    source = of(block, tuple(shape), value.element, is_small)
    zero = block.scalar("0.0" if value.is_real else "0", value.element, Numbers(0.0, 1.0))
    type_ = type_text((), value.element)
    kind = "FLOAT" if value.is_real else "SIGNED"
    greater = (
        f'{{\n^bb0(%a: {type_}, %b: {type_}):\n  %c = "stablehlo.compare"(%a, %b) <{{{comparison("GE", kind)}}}> : '
        f'({type_}, {type_}) -> tensor<i1>\n  "stablehlo.return"(%c) : (tensor<i1>) -> ()\n}}'
    )
    properties = (
        f"window_dimensions = {integers([each[0] for each in windows])}, "
        f"window_strides = {integers([each[1] for each in windows])}, "
        f"padding = dense<{[list(each[2:]) for each in windows]}> : tensor<{value.rank}x2xi64>"
    )
    return block.op(
        "stablehlo.select_and_scatter",
        (value, source, zero),
        value.shape,
        value.element,
        source.numbers.times(prod(each[0] for each in windows), value.element),
        properties,
        [greater, region_of("add", value.element)],
    )


def convolution(block: Block) -> Value:
    """Convolve along one or two spatial dimensions in any dimension order, with batch groups or feature groups."""
    choices = block.choices
    value = some(block, is_small, (*INTEGERS, *REALS, COMPLEX), rank=3)
    if value.rank > 4:
        raise NoCaseError
    order = _order(block, value.rank)
    batch, features, *spatial = (value.shape[order.index(what)] for what in ("b", "f", *range(value.rank - 2)))
    windows = [_window(block, size, choices.below(4) == 1) for size in spatial]
    feature_groups = choices.of([each for each in (1, 2, 3) if features % each == 0])
    batch_groups = 1 if feature_groups > 1 else choices.of([each for each in (1, 1, 2, 3) if batch % each == 0])
    outputs = choices.of((1, 2, 3)) * feature_groups * batch_groups
    sizes = {"o": outputs, "i": features // feature_groups, **{dim: each.size for dim, each in enumerate(windows)}}
    kernel_order = [{"b": "o", "f": "i"}.get(str(what), what) for what in _order(block, value.rank)]
    kernel = of(block, tuple(sizes[what] for what in kernel_order), value.element, is_small)
    result_order = _order(block, value.rank)
    results = {"b": batch // batch_groups, "f": outputs, **{dim: each.count for dim, each in enumerate(windows)}}
    shape = tuple(results[what] for what in result_order)
    if prod(shape) > LARGEST or not features:
        raise NoCaseError
    numbers = product(value.numbers, kernel.numbers, value.element)
    layout = f"{_text(order)}x{_text(kernel_order)}->{_text(result_order)}"
    turned = ", ".join(choices.of(("false", "true")) for _ in windows)
    properties = (
        f"dimension_numbers = #stablehlo.conv<{layout}>, "
        f"window_strides = {integers([each.stride for each in windows])}, "
        f"lhs_dilation = {integers([each.base for each in windows])}, "
        f"rhs_dilation = {integers([each.spread for each in windows])}, "
        f"padding = dense<{[[each.low, each.high] for each in windows]}> : tensor<{len(windows)}x2xi64>, "
        f"window_reversal = array<i1: {turned}>, "
        f"feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64"
    )
    count = prod(each.size for each in windows) * sizes["i"]
    return block.op(
        "stablehlo.convolution", (value, kernel), shape, value.element, numbers.times(count, value.element), properties
    )


def _order(block: Block, rank: int) -> list[str | int]:
    orders = [["b", "f", *range(rank - 2)], ["b", *range(rank - 2), "f"], [*range(rank - 2), "b", "f"]]
    return block.choices.of(orders)


def _text(order: list[str | int]) -> str:
    return f"[{', '.join(map(str, order))}]"


WINDOWS = [reduce_window, reduce_window, select_and_scatter, convolution]
