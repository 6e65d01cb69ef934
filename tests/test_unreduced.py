"""Partial results that a program asks for are combined once, on their way through the pipelines."""

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
def test_what_is_partial_for_a_while_is_combined_once(unreduced: str):
    module = sdy.parse(PROGRAM.format(unreduced=unreduced))
    sdy.propagate(module)
    sdy.partition(module)
    a, b = np.arange(16, dtype=np.float32).reshape(4, 4), np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(sdy.interpret(module, a, b)[0], a)
