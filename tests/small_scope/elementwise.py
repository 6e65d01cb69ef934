"""Operations on elements at the same place."""

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


ELEMENTWISE = [add, select_and_clamp, barrier]
