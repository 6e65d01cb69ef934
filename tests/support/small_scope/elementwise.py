"""Elementwise operations."""

from small_scope.indexing import region
from small_scope.program import Program


def add(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    one, other = program.argument(shape), program.argument(shape)
    return program.result(program.op(f"stablehlo.add {one.name}, {other.name}", shape))


def select_and_clamp(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    scalar = () if program.choices.of((True, False)) else shape
    value, least = program.argument(shape), program.argument(scalar)
    clamped = program.op(
        f"stablehlo.clamp {least.name}, {value.name}, {least.name}", shape, operands=(least, value, least)
    )
    chosen = program.op(f"stablehlo.compare LT, {clamped.name}, {value.name}", shape, "i1", operands=(clamped, value))
    return program.result(
        program.op(
            f"stablehlo.select {chosen.name}, {value.name}, {clamped.name}", shape, operands=(chosen, value, clamped)
        )
    )


def barrier(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    value = program.argument(shape)
    return program.result(program.op(f"stablehlo.optimization_barrier {value.name}", shape))


def complex_parts(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    one, other = (program.constrained(program.whole(shape, "f32")) for _ in range(2))
    both = program.op(f"stablehlo.complex {one.name}, {other.name}", shape, "complex<f32>", operands=(one, other))
    part = program.choices.of(("real", "imag"))
    return program.result(program.op(f"stablehlo.{part} {both.name}", shape, "f32", operands=(both,)))


def map_(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    one, other = program.argument(shape), program.argument(shape)
    dims = ", ".join(map(str, range(len(shape))))
    body = region("multiply")
    return program.result(
        program.op(
            f'"stablehlo.map"({one.name}, {other.name}) <{{dimensions = array<i64: {dims}>}}> {body}',
            shape,
            operands=(one, other),
        )
    )


def size_of_dimension(program: Program) -> Program:
    shape = (program.size(), program.size())
    value = program.argument(shape)
    dim = program.choices.of((0, 1))
    return program.result(program.op(f"stablehlo.get_dimension_size {value.name}, dim = {dim}", (), operands=(value,)))


ELEMENTWISE = [add, select_and_clamp, barrier, complex_parts, map_, size_of_dimension]
