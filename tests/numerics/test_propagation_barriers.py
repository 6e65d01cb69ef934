"""Programs with propagation barriers between different shardings compute the same after partitioning."""

from itertools import product

import numpy as np
import pytest

import sdy
from samples import covering, sample
from sdy.passes.driver import partition, propagate
from sdy.passes.interpret import interpret

DIRECTIONS = ("NONE", "FORWARD", "BACKWARD")

LAYOUTS = ("", '[{"x"}, {?}]', '[{?}, {"x"}]', '[{"y"}, {"x"}]', '[{"x", "y"}, {}]', "[{}, {}]")
"""Shardings of the argument and of the result; the first leaves them to propagation."""

PLACES = {
    "in a function": """
  %0 = stablehlo.negate %a : TENSOR
  %1 = sdy.propagation_barrier %0 allowed_direction=DIRECTION : TENSOR
  %2 = stablehlo.tanh %1 : TENSOR
  %r = stablehlo.add %1, %2 : TENSOR
""",
    "of an argument, twice, returned": """
  %0 = sdy.propagation_barrier %a allowed_direction=DIRECTION : TENSOR
  %r = sdy.propagation_barrier %0 allowed_direction=NONE : TENSOR
""",
    "with a sharding of its own": """
  %0 = stablehlo.negate %a : TENSOR
  %1 = sdy.propagation_barrier %0 allowed_direction=DIRECTION
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : TENSOR
  %r = stablehlo.tanh %1 : TENSOR
""",
    "around constraints": """
  %0 = sdy.sharding_constraint %a <@mesh, [{"y"}, {?}]> : TENSOR
  %1 = sdy.propagation_barrier %0 allowed_direction=DIRECTION : TENSOR
  %r = sdy.sharding_constraint %1 <@mesh, [{?}, {"y"}]> : TENSOR
""",
    "in a loop": """
  %n = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = sdy.propagation_barrier %a allowed_direction=DIRECTION : TENSOR
  %1:2 = stablehlo.while(%x = %0, %i = %zero) : TENSOR, tensor<i32>
   cond {
    %2 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
   } do {
    %3 = sdy.propagation_barrier %x allowed_direction=DIRECTION : TENSOR
    %4 = stablehlo.sine %3 : TENSOR
    %5 = sdy.propagation_barrier %4 allowed_direction=DIRECTION : TENSOR
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %5, %6 : TENSOR, tensor<i32>
   }
  %r = stablehlo.tanh %1#0 : TENSOR
""",
    "in a branch": """
  %i = stablehlo.constant dense<1> : tensor<i32>
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %a : TENSOR
  }, {
    %1 = stablehlo.negate %a : TENSOR
    %2 = sdy.propagation_barrier %1 allowed_direction=DIRECTION : TENSOR
    stablehlo.return %2 : TENSOR
  }) : (tensor<i32>) -> TENSOR
  %r = stablehlo.tanh %0 : TENSOR
""",
    "around and in a call": """
  %0 = sdy.propagation_barrier %a allowed_direction=DIRECTION : TENSOR
  %1 = call @f(%0) : (TENSOR) -> TENSOR
  %2 = call @f(%1) : (TENSOR) -> TENSOR
  %r = stablehlo.tanh %2 : TENSOR
""",
    "in a named computation": """
  %0 = sdy.named_computation<"f">(%a) (%x: TENSOR) {
    %1 = sdy.propagation_barrier %x allowed_direction=DIRECTION : TENSOR
    %2 = stablehlo.sine %1 : TENSOR
    sdy.return %2 : TENSOR
  } : (TENSOR) -> TENSOR
  %r = sdy.propagation_barrier %0 allowed_direction=DIRECTION : TENSOR
""",
    "in a manual computation": """
  %0 = sdy.propagation_barrier %a allowed_direction=DIRECTION : TENSOR
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {?}]>]
      manual_axes={"x"} (%x: LOCAL) {
    %2 = sdy.propagation_barrier %x allowed_direction=DIRECTION : LOCAL
    %3 = stablehlo.sine %2 : LOCAL
    sdy.return %3 : LOCAL
  } : (TENSOR) -> TENSOR
  %r = stablehlo.tanh %1 : TENSOR
""",
}

_SIZES = {"even": (8, 8), "uneven": (8, 5)}


def program(body: str, direction: str, shape: tuple[int, int], before: str, after: str) -> str:
    """Return a module whose main function has `body` and an argument and a result with these shardings."""
    argument, result = (
        f" {{sdy.sharding = #sdy.sharding<@mesh, {layout}>}}" if layout else "" for layout in (before, after)
    )
    text = f"""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: TENSOR{argument}) -> (TENSOR{result}) {{{body}
  return %r : TENSOR
}}
func.func private @f(%a: TENSOR) -> TENSOR {{
  %0 = stablehlo.sine %a : TENSOR
  %1 = sdy.propagation_barrier %0 allowed_direction=DIRECTION : TENSOR
  return %1 : TENSOR
}}
"""
    rows, columns = shape
    types = {"TENSOR": f"tensor<{rows}x{columns}xf32>", "LOCAL": f"tensor<{rows // 2}x{columns}xf32>"}
    for word, replacement in {**types, "DIRECTION": direction}.items():
        text = text.replace(word, replacement)
    return text


@covering
@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("place", PLACES)
def test_barriers_between_shardings_change_no_number(place: str, direction: str, size: str):
    shape = _SIZES[size]
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    for before, after in sample([*product(LAYOUTS, LAYOUTS)], one_in=10):
        whole = sdy.parse(program(PLACES[place], direction, shape, before, after))
        local = whole.clone()
        propagate(local)
        partition(local)
        np.testing.assert_array_equal(interpret(local, x)[0], interpret(whole, x)[0], err_msg=f"{before} {after}")
