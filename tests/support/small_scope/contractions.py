"""Dot products."""

from small_scope.program import Program


def dot(program: Program) -> Program:
    rows, inner, columns = program.size(), program.size(), program.size()
    lhs, rhs = program.argument((rows, inner)), program.argument((inner, columns))
    form = program.choices.of(("dot_general", "dot"))
    numbers = ", contracting_dims = [1] x [0]" if form == "dot_general" else ""
    text = f"stablehlo.{form} {lhs.name}, {rhs.name}{numbers}"
    return program.result(program.op(text, (rows, columns), operands=(lhs, rhs)))


def inner_product(program: Program) -> Program:
    size = program.size()
    lhs, rhs = program.argument((size,)), program.argument((size,))
    return program.result(
        program.op(
            f"stablehlo.dot_general {lhs.name}, {rhs.name}, contracting_dims = [0] x [0]", (), operands=(lhs, rhs)
        )
    )


def batches_of_products(program: Program) -> Program:
    batch, rows, inner = program.size(), program.size(1, 4), program.size(1, 5)
    lhs, rhs = program.argument((batch, rows, inner)), program.argument((batch, inner))
    return program.result(
        program.op(
            f"stablehlo.dot_general {lhs.name}, {rhs.name}, batching_dims = [0] x [0], contracting_dims = [2] x [1]",
            (batch, rows),
            operands=(lhs, rhs),
        )
    )


CONTRACTIONS = [dot, inner_product, batches_of_products]
