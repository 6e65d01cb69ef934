"""From one layout to another, and on to a third."""

from small_scope.program import Program


def reshard(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    return program.result(program.argument(shape))


def reshards(program: Program) -> Program:
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    return program.result(program.constrained(program.argument(shape)))


def reshard_of_three(program: Program) -> Program:
    shape = tuple(program.size(1, 5) for _ in range(3))
    return program.result(program.argument(shape))


RESHARDS = [reshard, reshards, reshard_of_three]
