"""Reshards, and sequences of two reshards."""

from small_scope.program import Program


def reshard_of_vector(program: Program) -> Program:
    value = program.whole((program.size(),))
    return program.result_as_it_is(program.closed(program.closed(value)))


def reshard_of_matrix(program: Program) -> Program:
    value = program.whole((program.size(), program.size()))
    return program.result_as_it_is(program.closed(program.closed(value)))


def reshard_of_three(program: Program) -> Program:
    shape = tuple(program.size(1, 5) for _ in range(3))
    return program.result(program.argument(shape))


def reshards(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    return program.result(program.constrained(program.argument(shape)))


RESHARDS = [reshard_of_vector, reshard_of_matrix, reshard_of_three, reshards]
