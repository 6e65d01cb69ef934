"""Distinguishing wrong results from rounding differences."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sdy
from sdy.passes.jax.program.result_origin import result_origins
from sdy.passes.jax.program.rounding import Again, Mismatch, Rounding, first_mismatch

FLOAT32 = Rounding(2.0**-23, 100)
NAN, INF = np.nan, np.inf


def never(relative: float) -> Sequence[Any]:
    raise AssertionError(relative)


def mismatch(result: Any, wanted: Any, rounding: Rounding = FLOAT32, again: Again | None = None) -> Mismatch | None:
    """Compare the result of a program whose reference is `wanted` for any rounding of its inputs."""
    return first_mismatch([result], [wanted], rounding, again or (lambda _: [wanted]))


SAME: dict[str, tuple[list[Any], list[Any], Any]] = {
    "a rounding": ([1, 1 + 2.0**-20], [1, 1], np.float32),
    "a small number beside large ones": ([1e-7, 1], [0, 1], np.float32),
    "NaNs and infinities": ([NAN, INF, -INF], [NAN, INF, -INF], np.float32),
    "a number of few bits": ([1 + 2.0**-7, 1], [1, 1], ml_dtypes.bfloat16),
    "complex numbers": ([1 + 1j, 1 + (1 + 2.0**-20) * 1j], [1 + 1j, 1 + 1j], np.complex64),
    "integers": ([2**62 + 1, 3], [2**62 + 1, 3], np.int64),
    "nothing": ([], [], np.float32),
}


@pytest.mark.parametrize(("result", "wanted", "dtype"), SAME.values(), ids=SAME)
def test_rounding_difference_is_not_a_mismatch(result: Any, wanted: Any, dtype: Any):
    assert mismatch(np.array(result, dtype), np.array(wanted, dtype), again=never) is None


OTHERS: dict[str, tuple[list[Any], list[Any], Any]] = {
    "a wrong element": ([1, 7], [1, 1], np.float32),
    "one that is off by a thousandth": ([1, 1.001], [1, 1], np.float32),
    "a NaN": ([1, NAN], [1, 1], np.float32),
    "no NaN": ([1, 1], [1, NAN], np.float32),
    "an infinity of the other sign": ([1, -INF], [1, INF], np.float32),
    "a number for an infinity": ([1, 3e38], [1, INF], np.float32),
    "a number of few bits": ([1, 1.5], [1, 1], ml_dtypes.bfloat16),
    "an imaginary part": ([1, 1 + 1j], [1, 1], np.complex64),
    "an integer": ([1, 2**62 + 1], [1, 2**62], np.int64),
    "a narrow integer": ([1, 3], [1, 2], ml_dtypes.int4),
    "a boolean": ([True, True], [True, False], np.bool_),
}


@pytest.mark.parametrize(("result", "wanted", "dtype"), OTHERS.values(), ids=OTHERS)
def test_mismatch_beyond_rounding_names_its_element(result: Any, wanted: Any, dtype: Any):
    found = mismatch(np.array(result, dtype), np.array(wanted, dtype))
    assert found is not None
    assert (found.result, found.index) == (0, (1,))
    np.testing.assert_array_equal([found.value, found.wanted], np.array([result[1], wanted[1]], dtype))


def test_cancellation_error_is_not_a_mismatch():
    """The gradient of a bias before a normalization cancels to zero: all its digits are rounding errors."""
    left, other = np.array([3e-9, -1e-9], np.float32), np.array([-2e-9, 2e-9], np.float32)
    assert mismatch(left, other) is not None
    assert mismatch(left, other, again=lambda relative: [other + np.float32(relative) / 64]) is None


def test_the_first_result_that_is_wrong_is_told():
    ones = np.ones((2, 3))
    wrong = ones.copy()
    wrong[1, 2] = 5
    found = first_mismatch([ones, wrong, wrong], [ones, ones, ones], FLOAT32, lambda _: [ones, ones, ones])
    assert found is not None
    assert (found.result, found.index, found.value, found.wanted) == (1, (1, 2), 5, 1)


def matmul(type_: str, size: int) -> Any:
    return sdy.parse(f"""
      func.func @main(%arg0: tensor<4x{size}x{type_}>, %arg1: tensor<{size}x4x{type_}>) -> tensor<4x4x{type_}> {{
        %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
          : (tensor<4x{size}x{type_}>, tensor<{size}x4x{type_}>) -> tensor<4x4x{type_}>
        return %0 : tensor<4x4x{type_}>
      }}""")


def test_rounding_grows_with_the_sums_and_with_the_type():
    short, long = (Rounding.of(matmul("f32", size)) for size in (16, 1600))
    assert short == Rounding(2.0**-23, 16)
    assert long.relative == pytest.approx(10 * short.relative)
    assert short.relative < long.relative < Rounding.of(matmul("bf16", 16)).relative < 1
    assert Rounding.of(matmul("i32", 16)) == Rounding(0, 0)


def test_origins_are_found_in_functions_that_are_called():
    drawn, given, called = result_origins(
        sdy.parse("""\
func.func private @f(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<4xf32>
  %1 = stablehlo.constant dense<4> : tensor<1xi64>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.rng %2, %2, %1, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}
func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<4xf32>
  %1:2 = func.call @f(%0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = stablehlo.add %1#1, %arg0 : tensor<4xf32>
  return %2, %arg0, %1#0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
""")
    )
    assert (drawn.operation.name, given.operation.name, called.operation.name) == (
        "stablehlo.add",
        "func.func",
        "stablehlo.tanh",
    )
    assert drawn.drawn is not None
    assert drawn.drawn.name == "stablehlo.rng"
    assert given.drawn is None
