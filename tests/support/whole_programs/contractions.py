"""Dot products and Fourier transforms."""

from math import prod

from small_scope.choices import NoCaseError
from whole_programs.block import LARGEST, Block
from whole_programs.elementwise import product
from whole_programs.operands import NUMBERS, is_small, of, some, some_size
from whole_programs.shaping import integers
from whole_programs.values import COMPLEX, Numbers, Value


def dot(block: Block) -> Value:
    """Multiply with some batching, some contracting and some free dimensions."""
    choices = block.choices
    lhs = some(block, is_small, NUMBERS, rank=1)
    kinds = [choices.of(("own", "contracted", "contracted", "batch")) for _ in lhs.shape]
    shared = [dim for dim, kind in enumerate(kinds) if kind != "own"]
    if choices.below(2):
        shared.reverse()
    shape = [(lhs.shape[dim], dim) for dim in shared]
    for _ in range(choices.of((1, 0, 2))):
        shape.insert(choices.below(len(shape) + 1), (some_size(block), -1))
    rhs = of(block, tuple(size for size, _ in shape), lhs.element, is_small)
    where = {dim: place for place, (_, dim) in enumerate(shape)}
    batch, contracted = ([dim for dim in shared if kinds[dim] == kind] for kind in ("batch", "contracted"))
    result = (
        [lhs.shape[dim] for dim in batch]
        + [size for dim, size in enumerate(lhs.shape) if kinds[dim] == "own"]
        + [size for size, dim in shape if dim == -1]
    )
    if prod(result) > LARGEST:
        raise NoCaseError
    numbers = (
        f"lhs_batching_dimensions = {batch}, rhs_batching_dimensions = {[where[dim] for dim in batch]}, "
        f"lhs_contracting_dimensions = {contracted}, rhs_contracting_dimensions = {[where[dim] for dim in contracted]}"
    )
    count = prod(lhs.shape[dim] for dim in contracted)
    return block.op(
        "stablehlo.dot_general",
        (lhs, rhs),
        tuple(result),
        lhs.element,
        product(lhs.numbers, rhs.numbers, lhs.element).times(count, lhs.element),
        f"dot_dimension_numbers = #stablehlo.dot<{numbers}>",
    )


def fft(block: Block) -> Value:
    """Transform along one dimension: XLA on CPU refuses the layouts of some of higher rank."""
    value = some(block, lambda each: is_small(each) and each.numbers.finite and each.rank == 1, (COMPLEX, "f32"))
    size = value.shape[0]
    if not size:
        raise NoCaseError
    kind, shape, element = "RFFT", (size // 2 + 1,), COMPLEX
    if value.element == COMPLEX:
        kind, shape = block.choices.of(("FFT", "IFFT")), value.shape
    numbers = Numbers(2 * size * value.numbers.largest, 0.0, 2 * size * value.numbers.error)
    properties = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {integers([size])}"
    return block.op("stablehlo.fft", (value,), shape, element, numbers.rounded(COMPLEX, size), properties)


CONTRACTIONS = [dot, dot, dot, fft]
