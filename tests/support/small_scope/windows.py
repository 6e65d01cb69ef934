"""Windowed operations of every size, stride, dilation and padding."""

from small_scope.indexing import region
from small_scope.program import Program


def _window(program: Program, size: int) -> tuple[int, int, int, int, int, int, int]:
    """Choose window size, stride, base dilation, window dilation, padding, and the result's size (at least 0)."""
    window, stride = program.choices.of((1, 2, 3, 4)), program.choices.of((1, 2, 3))
    base, spread = program.choices.of((1, 2)), program.choices.of((1, 2))
    low, high = program.choices.of((0, 1, 2, -1)), program.choices.of((0, 1, 3, -1))
    line = (max(size - 1, 0) * base + (size > 0)) + low + high
    program.choices.of([()] * (line >= 0))
    covered = (window - 1) * spread + 1
    return window, stride, base, spread, low, high, max(0, (line - covered) // stride + 1) if line >= covered else 0


def reduce_window(program: Program) -> Program:
    size = program.size()
    window, stride, base, spread, low, high, result = _window(program, size)
    reducer, other = program.choices.of(("add", "maximum")), program.choices.of(((), (2,)))
    value, init = program.argument((size, *other)), program.constant(0)
    ones = ", 1" * len(other)
    zeros = ", [0, 0]" * len(other)
    return program.result(
        program.op(
            f'"stablehlo.reduce_window"({value.name}, {init.name}) <{{window_dimensions = array<i64: {window}{ones}>, '
            f"window_strides = array<i64: {stride}{ones}>, base_dilations = array<i64: {base}{ones}>, "
            f"window_dilations = array<i64: {spread}{ones}>, "
            f"padding = dense<[[{low}, {high}]{zeros}]> : tensor<{1 + len(other)}x2xi64>}}> " + region(reducer),
            (result, *other),
            operands=(value, init),
        )
    )


def select_and_scatter(program: Program) -> Program:
    size = program.size(1)
    window, stride = program.choices.of((1, 2, 3)), program.choices.of((1, 2, 3))
    low, high = program.choices.of((0, 1)), program.choices.of((0, 1))
    count = (size + low + high - window) // stride + 1 if size + low + high >= window else 0
    program.choices.of([()] * (low < window and high < window))
    value, source, init = program.argument((size,)), program.argument((count,)), program.constant(0)
    greater = (
        "{ ^bb0(%a: tensor<i32>, %b: tensor<i32>): %c = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> "
        "tensor<i1> stablehlo.return %c : tensor<i1> }"
    )
    return program.result(
        program.op(
            f'"stablehlo.select_and_scatter"({value.name}, {source.name}, {init.name}) <{{'
            f"window_dimensions = array<i64: {window}>, window_strides = array<i64: {stride}>, "
            f"padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({greater}, {region('add')[1:-1]})",
            (size,),
            operands=(value, source, init),
        )
    )


def convolution(program: Program) -> Program:
    """Convolve along one spatial dimension, with batch groups or feature groups."""
    size = program.size()
    window, stride, base, spread, low, high, result = _window(program, size)
    kind, groups = program.choices.of((("plain", 1), ("features", 2), ("features", 3), ("batch", 2)))
    batch, features, outputs = program.choices.of((1, 2, 3)), program.choices.of((1, 2, 3)), program.choices.of((1, 3))
    batch *= groups if kind == "batch" else 1
    lhs_features = features * (groups if kind == "features" else 1)
    outputs *= groups
    is_reversed = program.choices.of(("false", "true"))
    lhs = program.argument((batch, lhs_features, size))
    rhs = program.argument((outputs, features, window))
    feature_groups, batch_groups = (groups, 1) if kind == "features" else (1, groups)
    return program.result(
        program.op(
            f"stablehlo.convolution({lhs.name}, {rhs.name}) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = "
            f"{{stride = [{stride}], pad = [[{low}, {high}]], lhs_dilate = [{base}], rhs_dilate = [{spread}], "
            f"reverse = [{is_reversed}]}} {{batch_group_count = {batch_groups} : i64, "
            f"feature_group_count = {feature_groups} : i64}}",
            (batch // batch_groups, outputs, result),
            operands=(lhs, rhs),
        )
    )


WINDOWS = [reduce_window, select_and_scatter, convolution]
