"""Random programs of several operations are never refused, and all devices together compute the result of one.

`python -m whole_programs.campaign --count 3000` from tests/support runs many more, and prints the failures.
"""

import ml_dtypes
import numpy as np
import pytest

from samples import sample
from whole_programs.arrays import Array
from whole_programs.campaign import program_of
from whole_programs.check import check
from whole_programs.program import WholeProgram

BY_XLA, BY_INTERPRETER = range(60), range(1000, 1200)


def assert_right(program: WholeProgram, by_xla: bool = False) -> None:
    verdict = check(program, by_xla)
    assert verdict.kind == "right", f"{verdict.why}\n{program.text}"


@pytest.mark.parametrize("seed", sample(BY_XLA, one_in=6))
def test_devices_compute_what_one_does_through_xla(seed: int):
    assert_right(program_of(seed)[0], by_xla=True)


@pytest.mark.parametrize("first", sample(BY_INTERPRETER[::20], one_in=3))
def test_devices_compute_what_one_does_in_the_interpreter(first: int):
    for seed in sample(range(first, first + 20)):
        assert_right(program_of(seed)[0])


def found(text: str, *inputs: Array) -> WholeProgram:
    """Return a program that a campaign found, with one exact result."""
    return WholeProgram(text, inputs, (0.0,))


def test_a_scalar_broadcast_to_a_scalar():
    text = """
    func.func @main(%a: tensor<i32>) -> tensor<i32> {
      %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<i32>) -> tensor<i32>
      %1 = stablehlo.add %0, %0 : tensor<i32>
      return %1 : tensor<i32>
    }"""
    assert_right(found(text, np.asarray(3, np.int32)))


def test_the_bits_of_a_scalar():
    text = """
    func.func @main(%a: tensor<ui8>) -> tensor<2xi8> {
      %0 = stablehlo.bitcast_convert %a : (tensor<ui8>) -> tensor<i8>
      %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i8>) -> tensor<2xi8>
      return %1 : tensor<2xi8>
    }"""
    assert_right(found(text, np.asarray(200, np.uint8)))


def test_the_gradient_of_windows_along_one_of_two_split_dimensions():
    text = """
    sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func @main(%a: tensor<1x5xi32>, %b: tensor<1x4xi32>) -> tensor<1x5xi32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0 = "stablehlo.select_and_scatter"(%a, %b, %zero) <{window_dimensions = array<i64: 1, 3>,
          window_strides = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %c = stablehlo.compare GE, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }, {
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %c = stablehlo.add %x, %y : tensor<i32>
          stablehlo.return %c : tensor<i32>
      }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>}
        : (tensor<1x5xi32>, tensor<1x4xi32>, tensor<i32>) -> tensor<1x5xi32>
      return %0 : tensor<1x5xi32>
    }"""
    inputs = np.asarray([[1, 5, 2, 4, 3]], np.int32), np.asarray([[1, 2, 3, 4]], np.int32)
    assert_right(found(text, *inputs))


def test_a_sum_of_no_complex_numbers():
    """XLA on CPU crashes on an all-reduce of a complex constant."""
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<3x0xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                    %y: tensor<0x4xcomplex<f32>>) -> tensor<3x4xcomplex<f32>> {
      %0 = stablehlo.dot %x, %y
        : (tensor<3x0xcomplex<f32>>, tensor<0x4xcomplex<f32>>) -> tensor<3x4xcomplex<f32>>
      return %0 : tensor<3x4xcomplex<f32>>
    }"""
    empty = np.zeros((3, 0), np.complex64), np.zeros((0, 4), np.complex64)
    assert_right(found(text, *empty), by_xla=True)


def test_arguments_without_elements_alone():
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<0xi32>, %b: tensor<0xi32>) -> tensor<i32> {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %0 = stablehlo.add %a, %b : tensor<0xi32>
      %1 = stablehlo.reduce(%0 init: %one) applies stablehlo.add across dimensions = [0]
        : (tensor<0xi32>, tensor<i32>) -> tensor<i32>
      return %1 : tensor<i32>
    }"""
    assert_right(found(text, np.zeros(0, np.int32), np.zeros(0, np.int32)), by_xla=True)


def test_operands_sharded_by_incompatible_sub_axes():
    text = """
    sdy.mesh @mesh = <["x"=6]>
    func.func @main(%a: tensor<6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                    %b: tensor<6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>}) -> tensor<6xi32> {
      %0 = stablehlo.subtract %a, %b : tensor<6xi32>
      return %0 : tensor<6xi32>
    }"""
    assert_right(found(text, np.arange(6, dtype=np.int32), np.arange(6, dtype=np.int32) ** 2), by_xla=True)


@pytest.mark.parametrize("index", [-1, 2, 9])
def test_parts_of_a_gather_of_one_slice_that_may_be_out_of_range(index: int):
    text = """
    sdy.mesh @mesh = <["x"=3]>
    func.func @main(%a: tensor<4x7xi32>, %index: tensor<1xi8>)
        -> (tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
      %0 = "stablehlo.gather"(%a, %index) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1],
          start_index_map = [1], index_vector_dim = 0>, slice_sizes = array<i64: 4, 3>}>
          {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
        : (tensor<4x7xi32>, tensor<1xi8>) -> tensor<4x3xi32>
      return %0 : tensor<4x3xi32>
    }"""
    inputs = np.arange(28, dtype=np.int32).reshape(4, 7), np.asarray([index], np.int8)
    assert_right(found(text, *inputs), by_xla=True)


@pytest.mark.parametrize("layout", ["{}", '{"x"}'])
@pytest.mark.parametrize(("operation", "start"), [("maximum", -np.inf), ("minimum", np.inf)])
@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64)])
def test_nan_of_one_device_among_the_numbers_of_others(
    element: str, dtype: type[np.generic], operation: str, start: float, layout: str
):
    text = f"""
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<4x4x{element}> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                    %start: tensor<{element}>)
        -> (tensor<4x{element}> {{sdy.sharding = #sdy.sharding<@mesh, [{layout}]>}}) {{
      %0 = stablehlo.reduce(%a init: %start) applies stablehlo.{operation} across dimensions = [0]
        : (tensor<4x4x{element}>, tensor<{element}>) -> tensor<4x{element}>
      return %0 : tensor<4x{element}>
    }}"""
    numbers = [
        [np.nan, -1.0, -2.0, -np.inf],
        [1.0, -np.nan, -0.0, -np.inf],
        [np.inf, 5.0, 0.0, -np.inf],
        [2.0, 3.0, -4.0, -np.inf],
    ]
    assert_right(found(text, np.asarray(numbers).astype(dtype), np.asarray(start).astype(dtype)), by_xla=True)
