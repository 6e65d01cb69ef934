"""Arithmetic of operations, counted by hand, and the time that hardware takes for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import sdy
from sdy.diagnostics import capture
from sdy.ir.walking import operations
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import compute_seconds

H100, V5E = hardware_of("h100"), hardware_of("tpu-v5e")


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, "float32")


def counted(function: Callable[..., Any], *arguments: jax.ShapeDtypeStruct) -> list[sdy.Work]:
    """Return the arithmetic of the operations that have some."""
    module = sdy.from_jax(function, *arguments)
    return [work for op in operations(module) if (work := arithmetic_of(op)).operations]


def convolution(x: jax.Array, w: jax.Array, **options: Any) -> jax.Array:
    return lax.conv_general_dilated(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


LAX: Any = lax
Counted = tuple[Callable[[Any], Any] | Callable[[Any, Any], Any], tuple[jax.ShapeDtypeStruct, ...], float]

CASES: list[Counted] = [
    (jnp.matmul, (f32(8, 16), f32(16, 4)), 2 * 8 * 16 * 4),
    (lambda x: LAX.fft(x, LAX.FftType.FFT, (16,)), (jax.ShapeDtypeStruct((4, 16), "complex64"),), 5 * 4 * 16 * 4),
    (lambda x: LAX.fft(x, LAX.FftType.RFFT, (16,)), (f32(4, 16),), 2.5 * 4 * 16 * 4),
    (lambda x: LAX.sort(x), (f32(4, 16),), 4 * 16 * 4 * 5 / 2),
    (jnp.linalg.cholesky, (f32(2, 6, 6),), 2 * 6**3 / 3),
    (lambda x: LAX.linalg.qr(x, full_matrices=False), (f32(8, 4),), 2 * (2 * 8 * 16 - 2 * 64 / 3)),
    (lambda x: LAX.linalg.eigh(x, symmetrize_input=False), (f32(6, 6),), 9 * 6**3),
    (lambda x: LAX.linalg.svd(x, full_matrices=False), (f32(8, 4),), 14 * 8 * 16 + 8 * 64),
    (lambda x: LAX.linalg.lu(x)[0], (f32(6, 6),), 2 * 6**3 - 2 * 6**3 / 3),
    (lambda a, b: LAX.linalg.triangular_solve(a, b, left_side=True), (f32(6, 6), f32(6, 3)), 36 * 3),
    (lambda x: LAX.reduce_window(x, 0.0, LAX.add, (3,), (1,), "VALID"), (f32(16),), 14 * 3),
    (lambda x, w: convolution(x, w, window_strides=(1, 1), padding="VALID"), (f32(2, 6, 6, 3), f32(3, 3, 3, 5)),
     2 * 2 * 16 * 5 * 3 * 9),
    # The edges of a padded image are multiplied by part of the kernel: 4 + 4 * 6 + 16 * 9 = (3 * 6 - 2)^2 pairs.
    (lambda x, w: convolution(x, w, window_strides=(1, 1), padding="SAME"), (f32(1, 6, 6, 1), f32(3, 3, 1, 1)),
     2 * 16 * 16),
    # Every other element is a hole in each dimension, so that a quarter of the products is left.
    (lambda x, w: convolution(x, w, window_strides=(1, 1), padding=((1, 1), (1, 1)), lhs_dilation=(2, 2)),
     (f32(1, 4, 4, 1), f32(2, 2, 1, 1)), 2 * 8 * 8),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "operations"), CASES)
def test_operations_are_counted(
    function: Callable[..., Any], arguments: tuple[jax.ShapeDtypeStruct, ...], operations: float
) -> None:
    works = counted(function, *arguments)
    assert sum(work.operations for work in works) == pytest.approx(operations)
    assert {type(work.operations) for work in works} <= {float, int}  # not of NumPy: costs are given to users


@pytest.mark.parametrize(("precision", "passes"), [(None, 1), ("high", 3), ("highest", 6)])
def test_a_product_runs_at_its_precision(precision: str | None, passes: int) -> None:
    """A TPU computes float32 by passes in bfloat16; an H100 by TensorFloat-32, or float32 for the highest precision."""
    (work,) = counted(partial(LAX.dot, precision=precision), f32(8, 8), f32(8, 8))
    ideal = replace(V5E, overhead=0.0, product_fraction=1.0)
    assert ideal.seconds(work, 1e12, 0) == pytest.approx(passes * 1e12 / 197e12, rel=1e-3)
    ideal = replace(H100, overhead=0.0, product_fraction=1.0)
    assert ideal.seconds(work, 1e12, 0) == pytest.approx(1e12 / (67e12 if precision == "highest" else 494.5e12))


def test_a_complex_product_is_four_real_ones() -> None:
    of_type = jax.ShapeDtypeStruct((8, 8), "complex64")
    (work,) = counted(jnp.matmul, of_type, of_type)
    assert work == sdy.Work(4 * 2 * 8**3, "f32")


def test_short_and_narrow_products_reach_less() -> None:
    """The reached part of the peak grows with the size; a matrix with one column takes the time of one with 128."""

    def seconds(rows: int, columns: int, summed: int) -> float:
        shapes = [jax.ShapeDtypeStruct(shape, "bfloat16") for shape in ((rows, summed), (summed, columns))]
        return compute_seconds(sdy.from_jax(jnp.matmul, *shapes), replace(V5E, memory_bandwidth=1e18))

    reached = [2 * size**3 / seconds(size, size, size) / 197e12 for size in (128, 512, 2048, 8192)]
    assert reached == sorted(reached)
    assert reached[0] < 0.1
    assert reached[-1] == pytest.approx(V5E.product_fraction, rel=0.01)
    assert seconds(4096, 1, 4096) > 0.9 * seconds(4096, 8, 4096)


CUDNN = """
func.func @main(%q: tensor<2x512x4x64xbf16>) -> tensor<2x4x512x64xbf16> {{
  %0 = stablehlo.custom_call @{target}(%q, %q, %q) {{backend_config = "{{\\22intermediate_tensor_shape\\22: \
{{\\22dimensions\\22: [\\222\\22, \\224\\22, \\22512\\22, \\221024\\22]}}, \\22mask_type\\22: \\22{mask}\\22}}"}} \
: (tensor<2x512x4x64xbf16>, tensor<2x512x4x64xbf16>, tensor<2x512x4x64xbf16>) -> tensor<2x4x512x64xbf16>
  return %0 : tensor<2x4x512x64xbf16>
}}
"""


@pytest.mark.parametrize("mask", ["NO_MASK", "CAUSAL"])
@pytest.mark.parametrize(("target", "products"), [("fmhaSoftmax", 2), ("fmhaScaleBiasSoftmaxBackward", 5)])
def test_attention_of_cudnn_has_the_products_of_its_scores(target: str, products: int, mask: str) -> None:
    module = sdy.parse(CUDNN.format(target=f"__cudnn${target}", mask=mask))
    (work,) = [work for op in operations(module) if (work := arithmetic_of(op)).operations]
    assert work == sdy.Work(products * 2 * (2 * 4 * 512 * 1024) * 64 / (2 if mask == "CAUSAL" else 1), "bf16")


def test_a_sort_has_its_own_rate_or_that_of_vectors() -> None:
    (work,) = counted(LAX.sort, f32(4, 16))
    without = replace(H100, peak={name: rate for name, rate in H100.peak.items() if name != "sort"})
    assert H100.seconds(work, 1e12, 0) == pytest.approx(1e12 / 1.1e12, rel=1e-3)
    assert without.seconds(work, 1e12, 0) == pytest.approx(1e12 / 67e12, rel=1e-3)
    assert H100.peak_of("i4") == 67e12  # an unlisted type has the lowest rate of arithmetic


def attended(query: jax.Array, key: jax.Array) -> jax.Array:
    return jax.nn.softmax(query @ key.T) @ key


def declared(shapes: Sequence[Sequence[int]]) -> sdy.Work:
    return sdy.Work(7e9 * shapes[0][0], "bf16", bytes=1.0)


@pytest.mark.parametrize("cost", [None, declared])
def test_an_operator_has_the_work_of_its_function_or_that_it_declares(cost: Any) -> None:
    operator = sdy.register_op("s d^, t^ d^ -> s d^", name=f"attended_{cost is None}", cost=cost, check=False)(attended)
    (work,) = counted(operator, f32(64, 16), f32(64, 16))
    assert work.operations == (7e9 * 64 if cost else 4 * 64 * 64 * 16)
    gradient = counted(jax.grad(lambda q, k: operator(q, k).sum()), f32(64, 16), f32(64, 16))
    of_function = 4 * 64 * 64 * 16
    assert sum(each.operations for each in gradient) >= (3 * 7e9 * 64 if cost else 2 * of_function)


def test_the_declared_work_counts_for_each_shard() -> None:
    operator = sdy.register_op("s d^, t^ d^ -> s d^", name="attended_apart", cost=declared, check=False)(attended)
    module = sdy.from_jax(operator, f32(64, 16), f32(64, 16))
    module = sdy.parse(
        sdy.format(module)
        .replace("func.func", 'sdy.mesh @mesh = <["x"=4]>\n  func.func', 1)
        .replace(
            "%arg0: tensor<64x16xf32>", '%arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}', 1
        )
    )
    with capture():
        sdy.propagate(module)
        sdy.partition(module)
    ideal = replace(H100, overhead=0.0, product_fraction=1.0)
    assert compute_seconds(module, ideal) == pytest.approx(7e9 * 16 / 989e12, rel=0.01)


def _adam(p: jax.Array, m: jax.Array, v: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return p - m / (jnp.sqrt(v) + 1e-6), m, v


def _summed(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x) * y + x)


def _in_turns(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda _, total: total * y + jnp.tanh(y), x)


def _negated(x: jax.Array) -> jax.Array:
    return -x


def _summed_and_added(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.sum(x), x + y


def _in_two_steps(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = x + 1
    return y, y * 2


ARRAYS: Sequence[tuple[Callable[..., Any], int, int]] = [
    (_negated, 1, 2),
    (_adam, 4, 7),
    (_summed, 2, 2),
    (_summed_and_added, 2, 4),
    (_in_two_steps, 1, 3),
    (_in_turns, 2, 9),
]
"""Functions, the number of their arguments, and of arrays that they read and write."""


@pytest.mark.parametrize(("function", "arguments", "arrays"), ARRAYS)
def test_a_fusion_reads_and_writes_each_array_once(function: Callable[..., Any], arguments: int, arrays: int) -> None:
    shape = jax.ShapeDtypeStruct((1024, 1024), "float32")
    hardware = replace(V5E, memory_fraction=1.0, overhead=0.0)
    seconds = compute_seconds(sdy.from_jax(jax.jit(function), *[shape] * arguments), hardware)
    assert seconds * hardware.memory_bandwidth == pytest.approx(arrays * 4 * 2**20, rel=0.01)
