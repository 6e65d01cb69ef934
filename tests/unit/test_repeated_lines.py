"""A repeated line is not verified again if the verification of the first one also applies to it."""

import pytest

import sdy
from sdy.diagnostics import DiagnosticError

REFUSED = {
    "the first is wrong": (
        """
        func.func @f(%a: tensor<2xf32>) -> tensor<2xi32> {
          %0 = stablehlo.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi32>
          %1 = stablehlo.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi32>
          return %1 : tensor<2xi32>
        }
        func.func @g(%a: tensor<2xf32>) -> tensor<2xi32> {
          %0 = stablehlo.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi32>
          return %0 : tensor<2xi32>
        }
        """,
        2 * ["op requires the same element type for all operands and results"],
    ),
    "another one uses what it cannot see": (
        """
        func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.negate %a : tensor<2xf32>
          builtin.module {
            func.func @g(%b: tensor<2xf32>) -> tensor<2xf32> {
              %1 = stablehlo.negate %b : tensor<2xf32>
              %2 = stablehlo.negate %a : tensor<2xf32>
              return %2 : tensor<2xf32>
            }
          }
          return %0 : tensor<2xf32>
        }
        """,
        ["'stablehlo.negate' op using value defined outside the region"],
    ),
    "another one uses what comes later": (
        """
        func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.negate %a : tensor<2xf32>
          %1 = stablehlo.negate %2 : tensor<2xf32>
          %2 = stablehlo.negate %a : tensor<2xf32>
          return %1 : tensor<2xf32>
        }
        """,
        ["operand #0 does not dominate this use"],
    ),
    "another one is behind the terminator": (
        """
        func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.negate %a : tensor<2xf32>
          return %0 : tensor<2xf32>
          %1 = stablehlo.negate %a : tensor<2xf32>
        }
        """,
        ["'func.return' op must be the last operation in the parent block"],
    ),
    "another one ends a block in the middle": (
        """
        func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
          return %a : tensor<2xf32>
        }
        func.func @g(%a: tensor<2xf32>) -> tensor<2xf32> {
          return %a : tensor<2xf32>
          return %a : tensor<2xf32>
        }
        """,
        ["'func.return' op must be the last operation in the parent block"],
    ),
    "another one has a sharding that is bound around it": (
        """
        sdy.mesh @mesh = <["x"=2]>
        func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<2xf32>
          %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
              manual_axes={"x"} (%b: tensor<1xf32>) {
            %2 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<2xf32>
            sdy.return %b : tensor<1xf32>
          } : (tensor<2xf32>) -> tensor<2xf32>
          return %1 : tensor<2xf32>
        }
        """,
        ['operates on axis "x" which is already bound by a parent sdy.manual_computation op'],
    ),
    "another one calls what has other types": (
        """
        func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = call @g(%a) : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }
        func.func private @g(%a: tensor<2xf32>) -> tensor<2xf32>
        module {
          func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
            %0 = call @g(%a) : (tensor<2xf32>) -> tensor<2xf32>
            return %0 : tensor<2xf32>
          }
          func.func private @g(%a: tensor<3xf32>) -> tensor<2xf32>
        }
        """,
        ["operand type mismatch: expected operand type 'tensor<3xf32>', but provided 'tensor<2xf32>'"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_error_in_a_similar_line_is_found(name: str):
    text, expected = REFUSED[name]
    with pytest.raises(DiagnosticError) as problem:
        sdy.parse(text)
    messages = [diagnostic.message for diagnostic in problem.value.diagnostics]
    assert len(messages) == len(expected)
    for message, part in zip(messages, expected, strict=True):
        assert part in message
