"""Operations that only move elements: reshapes, transposes, broadcasts, pads and the like."""

from math import prod

import numpy as np

from small_scope.program import Program, Shape, Value, type_text


def reshape(program: Program) -> Program:
    before, after = program.choices.of(_RESHAPES)
    value = program.argument(before)
    return program.result(program.op(f"stablehlo.reshape {value.name}", after, operands=(value,)))


_SHAPES: list[Shape] = [
    (),
    *((n,) for n in range(25)),
    *((n, m) for n in range(8) for m in range(8)),
    (2, 2, 3),
    (3, 2, 2),
    (2, 3, 2),
]
_RESHAPES = [(one, other) for one in _SHAPES for other in _SHAPES if one != other and prod(one) == prod(other) and one]


def transpose(program: Program) -> Program:
    shape = (program.size(), program.size())
    value = program.argument(shape)
    return program.result(
        program.op(f"stablehlo.transpose {value.name}, dims = [1, 0]", shape[::-1], operands=(value,))
    )


def transpose_of_three(program: Program) -> Program:
    shape = (program.size(1, 3), program.size(1, 3), program.size(1, 3))
    order = program.choices.of(((0, 2, 1), (1, 2, 0), (2, 1, 0)))
    value = program.argument(shape)
    result = tuple(shape[dim] for dim in order)
    return program.result(
        program.op(f"stablehlo.transpose {value.name}, dims = {list(order)}", result, operands=(value,))
    )


def broadcast(program: Program) -> Program:
    before, dims, after = program.choices.of(_BROADCASTS)
    size, other = program.size(), program.size()
    before, after = (tuple({"n": size, "m": other}.get(dim, 1) for dim in shape) for shape in (before, after))
    value = program.argument(before)
    return program.result(
        program.op(f"stablehlo.broadcast_in_dim {value.name}, dims = {dims}", after, operands=(value,))
    )


_BROADCASTS: list[tuple[str, list[int], str]] = [
    ("", [], "n"),
    ("n", [0], "nm"),
    ("n", [1], "mn"),
    ("1", [0], "n"),
    ("1n", [0, 1], "mn"),
    ("n1", [0, 1], "nm"),
    ("nm", [1, 0], "mn"),
]


def broadcast_in_front(program: Program) -> Program:
    size, times = program.size(), program.size()
    value = program.argument((size,))
    text = f"stablehlo.broadcast {value.name}, sizes = [{times}]"
    return program.result(program.op(text, (times, size), operands=(value,)))


def reverse(program: Program) -> Program:
    shape = _shape(program, 2)
    dims = program.choices.of([[dim] for dim in range(len(shape))] + [[*range(len(shape))]] * (len(shape) > 1))
    value = program.argument(shape)
    return program.result(program.op(f"stablehlo.reverse {value.name}, dims = {dims}", shape))


def concatenate(program: Program) -> Program:
    dim = program.choices.of((None, 0, 1))
    sizes = [program.size() for _ in range(program.choices.of((2, 3)))]
    other = () if dim is None else (program.size(1, 4),)
    values = [program.argument((size, *other) if dim != 1 else (*other, size)) for size in sizes]
    shape = (sum(sizes), *other) if dim != 1 else (*other, sum(sizes))
    names = ", ".join(value.name for value in values)
    return program.result(program.op(f"stablehlo.concatenate {names}, dim = {dim or 0}", shape, operands=(*values,)))


def slice_(program: Program) -> Program:
    shape = _shape(program, 2)
    ranges = [_range(program, size) for size in shape]
    value = program.argument(shape)
    text = ", ".join(f"{start}:{limit}:{stride}" for start, limit, stride in ranges)
    return program.result(
        program.op(
            f"stablehlo.slice {value.name} [{text}]",
            tuple(len(range(start, limit, stride)) for start, limit, stride in ranges),
            operands=(value,),
        )
    )


def _range(program: Program, size: int) -> tuple[int, int, int]:
    start = program.choices.of(range(size + 1))
    return start, program.choices.of(range(start, size + 1)), program.choices.of((1, 2, 3))


def pad(program: Program) -> Program:
    shape = _shape(program, 2)
    columns = [
        (program.choices.of((0, 1, 3, -1, -2)), program.choices.of((0, 2, 1, -1, -3)), program.choices.of((0, 1, 2)))
        for _ in shape
    ]
    result = tuple(
        low + high + size + max(size - 1, 0) * between
        for size, (low, high, between) in zip(shape, columns, strict=True)
    )
    program.choices.of([()] * (min(result) >= 0))
    value, filler = program.argument(shape), program.whole(())
    low, high, between = (list(column) for column in zip(*columns, strict=True))
    return program.result(
        program.op(
            f"stablehlo.pad {value.name}, {filler.name}, low = {low}, high = {high}, interior = {between}",
            result,
            operands=(value, filler),
        )
    )


def iota(program: Program) -> Program:
    shape = _shape(program, 2)
    return program.result(program.op(f"stablehlo.iota dim = {program.choices.below(len(shape))}", shape))


def constant(program: Program) -> Program:
    shape = _shape(program, 2)
    elements = "" if 0 in shape else str(np.arange(prod(shape)).reshape(shape).tolist())
    return program.result(program.op(f"stablehlo.constant dense<{elements}>", shape))


def random_bits(program: Program) -> Program:
    shape = _shape(program, 2)
    state = program.whole((2,), "ui64")
    name = "%bits"
    program.line(
        f"{name}:2 = stablehlo.rng_bit_generator {state.name}, algorithm = THREE_FRY : ({state.type}) -> "
        f"({state.type}, {type_text(shape)})"
    )
    return program.result(Value(f"{name}#1", shape))


def bitcast(program: Program) -> Program:
    shape = _shape(program, 1)
    value = program.argument(shape)
    if program.choices.of((True, False)):
        return program.result(
            program.op(f"stablehlo.bitcast_convert {value.name}", (*shape, 4), "i8", operands=(value,))
        )
    value = program.argument((*shape, 4), "i8")
    return program.result(program.op(f"stablehlo.bitcast_convert {value.name}", shape, operands=(value,)))


def _shape(program: Program, most: int) -> Shape:
    return tuple(program.size() for _ in range(program.choices.of(range(1, most + 1))))


SHAPING = [
    *(reshape, transpose, transpose_of_three, broadcast, broadcast_in_front, reverse, concatenate, slice_, pad),
    *(iota, constant, random_bits, bitcast),
]
