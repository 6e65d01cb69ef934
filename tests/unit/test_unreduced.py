"""Unreduced axes that a program declares are reduced exactly once by the pipelines."""

import numpy as np
import pytest

import sdy

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x", "y"}}]>}},
                %b: tensor<4x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x", "y"}}, {{}}]>}}) -> tensor<4x4xf32> {{
  %0 = stablehlo.dot %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{}}], unreduced={{{unreduced}}}> : tensor<4x4xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{{}}, {{}}]> : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}}
"""


@pytest.mark.parametrize("unreduced", ['"x"', '"y"', '"x", "y"'])
def test_partial_sum_is_reduced_once(unreduced: str):
    module = sdy.parse(PROGRAM.format(unreduced=unreduced))
    sdy.propagate(module)
    sdy.partition(module)
    a, b = np.arange(16, dtype=np.float32).reshape(4, 4), np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(sdy.interpret(module, a, b)[0], a)


CONSTANT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = sdy.sharding_constraint %0 <@mesh, [], unreduced={"x"}> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{}], unreduced={"x"}> : tensor<4xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{}]> : tensor<4xf32>
  %5 = stablehlo.add %4, %a : tensor<4xf32>
  return %5 : tensor<4xf32>
}
"""


def test_a_constant_that_is_to_be_partial_is_on_one_device():
    module = sdy.parse(CONSTANT)
    sdy.propagate(module)
    sdy.partition(module)
    assert "all_reduce" in sdy.format(module)
    np.testing.assert_array_equal(sdy.interpret(module, np.zeros(4, np.float32))[0], np.ones(4))


SUM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>}) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<4x2x2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}], unreduced={"x"}> : tensor<2xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{}]> : tensor<2xf32>
  return %3 : tensor<2xf32>
}
"""


def test_a_sum_that_is_partial_along_one_of_two_axes_is_computed_in_parts():
    module = sdy.parse(SUM)
    sdy.propagate(module)
    sdy.partition(module)
    assert "all_gather" not in sdy.format(module)
    a = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    np.testing.assert_array_equal(sdy.interpret(module, a)[0], a.sum((0, 1)))
