"""Reductions, prefix sums and sorts."""

from small_scope.indexing import region
from small_scope.program import Program, Value, type_text

_START = {"add": 0, "maximum": -(2**31), "minimum": 2**31 - 1, "multiply": 1, "xor": 0, "and": -1, "or": 0}


def reduce(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    dims = program.choices.of([[dim] for dim in range(len(shape))] + [[0, 1]] * (len(shape) > 1))
    reducer = program.choices.of([*_START])
    value, init = program.argument(shape), program.constant(_START[reducer])
    return program.result(
        program.op(
            f"stablehlo.reduce({value.name} init: {init.name}) applies stablehlo.{reducer} across dimensions = {dims}",
            tuple(size for dim, size in enumerate(shape) if dim not in dims),
            operands=(value, init),
        )
    )


def greatest_and_its_place(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    dim = program.choices.below(len(shape))
    value, places = program.argument(shape), program.op(f"stablehlo.iota dim = {dim}", shape)
    least, zero = program.constant(-(2**31)), program.constant(0)
    result = shape[:dim] + shape[dim + 1 :]
    pair = program.ops(
        f'"stablehlo.reduce"({value.name}, {places.name}, {least.name}, {zero.name}) '
        f"<{{dimensions = array<i64: {dim}>}}> ({{ ^bb0(%a: tensor<i32>, %i: tensor<i32>, %b: tensor<i32>, "
        "%j: tensor<i32>): %c = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1> "
        "%d = stablehlo.select %c, %a, %b : tensor<i1>, tensor<i32> "
        "%e = stablehlo.select %c, %i, %j : tensor<i1>, tensor<i32> "
        "stablehlo.return %d, %e : tensor<i32>, tensor<i32> })",
        [result, result],
        (value, places, least, zero),
    )
    return program.result(*pair)


def sort(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    dim = program.choices.below(len(shape))
    value = program.argument(shape)
    direction = program.choices.of(("LT", "GT"))
    return program.result(
        program.op(
            f'"stablehlo.sort"({value.name}) <{{dimension = {dim} : i64, is_stable = true}}> ({{ ^bb0(%a: tensor<i32>, '
            f"%b: tensor<i32>): %c = stablehlo.compare {direction}, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1> "
            "stablehlo.return %c : tensor<i1> })",
            shape,
            operands=(value,),
        )
    )


def running_sum(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    dim = program.choices.below(len(shape))
    from_end = program.choices.of((False, True))
    value, init = program.argument(shape), program.constant(0)
    window = [size if each == dim else 1 for each, size in enumerate(shape)]
    margin = shape[dim] - 1
    padding = [[0, 0] if each != dim else [0, margin] if from_end else [margin, 0] for each in range(len(shape))]
    return program.result(
        program.op(
            f'"stablehlo.reduce_window"({value.name}, {init.name}) <{{window_dimensions = '
            f"array<i64: {', '.join(map(str, window))}>, padding = dense<{padding}> : tensor<{len(shape)}x2xi64>}}> "
            + region("add"),
            shape,
            operands=(value, init),
        )
    )


def top_k(program: Program) -> Program:
    shape = (program.size(1), program.size(1))
    count = program.size(1, shape[1])
    value = program.argument(shape)
    result = (shape[0], count)
    name = f"%k{count}"
    program.line(
        f"{name}:2 = chlo.top_k({value.name}, k = {count}) : {value.type} -> ({type_text(result)}, {type_text(result)})"
    )
    return program.result(Value(f"{name}#0", result), Value(f"{name}#1", result))


REDUCTIONS = [reduce, greatest_and_its_place, sort, running_sum, top_k]
