"""Batched factorizations, solves and Fourier transforms, compared up to rounding."""

import numpy as np

from small_scope.program import Array, Program, Value


def cholesky(program: Program) -> Program:
    matrices = _positive_definite(program)
    lower = program.choices.of(("true", "false"))
    return program.result(program.op(f"stablehlo.cholesky {matrices.name}, lower = {lower}", matrices.shape, "f32"))


def triangular_solve(program: Program) -> Program:
    matrices = _positive_definite(program)
    left = program.choices.of((True, False))
    batch, size, others = *matrices.shape[:2], program.size(1, 5)
    shape = (batch, size, others) if left else (batch, others, size)
    values = program.constrained(program.whole(shape, "f32", np.cos(np.arange(np.prod(shape))).reshape(shape)))
    transpose = program.choices.of(("NO_TRANSPOSE", "TRANSPOSE"))
    return program.result(
        program.op(
            f'"stablehlo.triangular_solve"({matrices.name}, {values.name}) <{{left_side = {str(left).lower()}, lower = '
            f"{program.choices.of(('true', 'false'))}, unit_diagonal = {program.choices.of(('true', 'false'))}, "
            f"transpose_a = #stablehlo<transpose {transpose}>}}>",
            shape,
            "f32",
            operands=(matrices, values),
        )
    )


def fft(program: Program) -> Program:
    shape = (program.size(), program.size(1, 4), program.size(1))
    lengths = shape[program.choices.of((1, 2)) :]
    kind, before, after = program.choices.of((("FFT", "complex<f32>", "complex<f32>"), ("RFFT", "f32", "complex<f32>")))
    numbers = np.cos(np.arange(np.prod(shape))).reshape(shape)
    value = program.constrained(program.whole(shape, before, numbers))
    result = (*shape[:-1], shape[-1] // 2 + 1) if kind == "RFFT" else shape
    text = f"stablehlo.fft {value.name}, type = {kind}, length = {list(lengths)}"
    return program.result(program.op(text, result, after, operands=(value,)))


def batch_norm_inference(program: Program) -> Program:
    shape = (program.size(), program.size(), program.size(1, 3))
    dim = program.choices.of((0, 1, 2))
    value = program.constrained(program.whole(shape, "f32", np.cos(np.arange(np.prod(shape))).reshape(shape)))
    ofs = [program.constrained(program.whole((shape[dim],), "f32", 1 + np.arange(shape[dim]) / 3)) for _ in range(4)]
    names = ", ".join(each.name for each in (value, *ofs))
    return program.result(
        program.op(
            f'"stablehlo.batch_norm_inference"({names}) <{{epsilon = 0.5 : f32, feature_index = {dim} : i64}}>',
            shape,
            "f32",
            operands=(value, *ofs),
        )
    )


def _positive_definite(program: Program) -> Value:
    batch, size = program.size(), program.size(1, 5)
    numbers: Array = np.cos(np.arange(batch * size * size)).reshape(batch, size, size)
    return program.constrained(program.whole((batch, size, size), "f32", numbers @ numbers.mT + 3 * np.eye(size)))


LINEAR_ALGEBRA = [cholesky, triangular_solve, fft, batch_norm_inference]
