"""Operations on matrices, custom calls, random number generators."""

from random import Random

from random_operations.text import SIZES, array, family, function, random_shape, tensor


@family
def cholesky(rng: Random) -> str:
    size = rng.choice(SIZES)
    type_ = tensor([*random_shape(rng, 0, 2), size, size])
    return function("stablehlo.cholesky", [type_], [type_], "lower = true")


@family
def triangular_solve(rng: Random) -> str:
    batch, size, other = random_shape(rng, 0, 2), rng.choice([1, 2, 5, 8]), rng.choice([1, 3, 8])
    left = rng.random() < 0.5
    b = [*batch, size, other] if left else [*batch, other, size]
    transpose = rng.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    return function(
        "stablehlo.triangular_solve",
        [tensor([*batch, size, size]), tensor(b)],
        [tensor(b)],
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {transpose}>",
    )


@family
def fft(rng: Random) -> str:
    batch, lengths = random_shape(rng, 0, 2), [rng.choice([1, 2, 3, 8]) for _ in range(rng.randint(1, 3))]
    real, half = [*batch, *lengths], [*batch, *lengths[:-1], lengths[-1] // 2 + 1]
    kind, operand, result = rng.choice(
        [
            ("FFT", tensor(real, "complex<f32>"), tensor(real, "complex<f32>")),
            ("IFFT", tensor(real, "complex<f32>"), tensor(real, "complex<f32>")),
            ("RFFT", tensor(real), tensor(half, "complex<f32>")),
            ("IRFFT", tensor(half, "complex<f32>"), tensor(real)),
        ]
    )
    return function(
        "stablehlo.fft", [operand], [result], f"fft_length = {array(lengths)}, fft_type = #stablehlo<fft_type {kind}>"
    )


@family
def rng_bit_generator(rng: Random) -> str:
    return function(
        "stablehlo.rng_bit_generator",
        [tensor([2], "ui64")],
        [tensor([2], "ui64"), tensor(random_shape(rng), "ui32")],
        "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>",
    )


@family
def custom_call(rng: Random) -> str:
    batch, rows, columns = random_shape(rng, 0, 2), rng.choice([1, 4, 7]), rng.choice([1, 4, 8])
    matrices, square = tensor([*batch, rows, columns]), tensor([*batch, rows, rows])
    smaller = tensor([*batch, rows, min(columns, 3)])
    vectors = tensor([*batch, min(rows, columns)])
    target, operands, results = rng.choice(
        [
            ("MoveToHost", [matrices], [matrices]),
            ("LayoutConstraint", [matrices], [matrices]),
            ("_SPMDInternalOp_RotateRight", [matrices], [matrices]),
            ("_SPMDInternalOp_MultiSlice", [matrices], [matrices, matrices]),
            ("mhlo.erf", [matrices], [matrices]),
            ("X64Combine", [matrices, matrices], [matrices]),
            ("tpu_custom_call", [matrices], [matrices]),
            ("nobody_knows_this", [matrices], [matrices]),
            ("Eigh", [square], [square, tensor([*batch, rows])]),
            ("Qr", [matrices], [matrices, vectors]),
            ("QrDecompositionBlock", [matrices], [matrices, vectors]),
            ("ProductOfElementaryHouseholderReflectors", [matrices, vectors], [matrices]),
            ("mhlo.topk", [matrices], [smaller, smaller]),
            ("ApproxTopK", [matrices, matrices, tensor([]), tensor([])], [smaller, smaller]),
            ("PartialReduce", [matrices, matrices, tensor([]), tensor([])], [smaller, smaller]),
        ]
    )
    return function("stablehlo.custom_call", operands, results, f'call_target_name = "{target}"')


@family
def random_state_of_halves(rng: Random) -> str:
    return f"""
func.func @NAME(%0: tensor<2xui32>, %1: tensor<2xui32>) {{
  %2 = stablehlo.custom_call @X64Combine(%0, %1) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>
  %3, %4 = stablehlo.rng_bit_generator %2, algorithm = DEFAULT
    : (tensor<2xui64>) -> (tensor<2xui64>, {tensor(random_shape(rng), "ui32")})
  return
}}"""
