"""`canonicalize`, `cse`, `inline` and `symbol-dce` compared with MLIR's passes, on test programs and random modules."""

from pathlib import Path

import pytest

from jax_programs import PROGRAMS, lowered
from oracle import OracleError, assert_same, oracle
from random_modules import random_module
from samples import sample
from sdy.diagnostics import DiagnosticError
from sdy.passes.spec import parse_pipeline
from sdy.text import context, format, parse, verify

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("common passes")

EXAMPLE = Path(__file__).parents[2] / "examples/transformer.mlir"
PASSES = ("canonicalize", "cse", "symbol-dce")
SEEDS = sample(range(100), one_in=15)

DEAD = """
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @carried(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0:3 = stablehlo.while(%i = %zero, %a = %arg0, %b = %arg1) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
      cond {
        %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        %x = stablehlo.negate %a : tensor<8xf32>
        %y = stablehlo.abs %b : tensor<8xf32>
        stablehlo.return %next, %x, %y : tensor<i32>, tensor<8xf32>, tensor<8xf32>
      }
      return %0#1 : tensor<8xf32>
    }
    func.func @loop(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.while(%a = %arg0) : tensor<8xf32>
      cond {
        %never = stablehlo.constant dense<false> : tensor<i1>
        stablehlo.return %never : tensor<i1>
      } do {
        stablehlo.return %a : tensor<8xf32>
      }
      return %arg0 : tensor<8xf32>
    }
    func.func @computations(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
      %0:2 = sdy.manual_computation(%arg0, %arg1)
          in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>]
          manual_axes={"x"} (%a: tensor<4xf32>, %b: tensor<4xf32>) {
        %x = stablehlo.negate %a : tensor<4xf32>
        sdy.return %a, %x : tensor<4xf32>, tensor<4xf32>
      } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
      %1 = sdy.named_computation<"f">(%arg0) (%a: tensor<8xf32>) {
        sdy.return %a : tensor<8xf32>
      } : (tensor<8xf32>) -> (tensor<8xf32>)
      return %0#0 : tensor<8xf32>
    }
    func.func @operations(%arg0: tensor<8xf32>, %token: !stablehlo.token) {
      %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
      %1 = sdy.propagation_barrier %arg0 allowed_direction=NONE : tensor<8xf32>
      sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
      %2 = stablehlo.custom_call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      %3 = stablehlo.after_all %token : !stablehlo.token
      %4 = stablehlo.optimization_barrier %arg0 : tensor<8xf32>
      %5 = stablehlo.partition_id : tensor<ui32>
      %6 = "stablehlo.sort"(%arg0) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
      }) {dimension = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
      return
    }
    func.func private @never_called()
"""
TWICE = """
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @constants(%arg0: tensor<8xf32>, %choice: tensor<i32>) -> tensor<8xf32> {
      %a = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<8xf32>
      %b = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} dense<1.0> : tensor<8xf32>
      %0 = "stablehlo.case"(%choice) ({
        %c = stablehlo.constant dense<3.0> : tensor<8xf32>
        %x = stablehlo.add %b, %c : tensor<8xf32>
        %y = stablehlo.add %b, %c : tensor<8xf32>
        %z = stablehlo.multiply %x, %y : tensor<8xf32>
        stablehlo.return %z : tensor<8xf32>
      }, {
        %c = stablehlo.constant dense<3.0> : tensor<8xf32>
        stablehlo.return %c : tensor<8xf32>
      }) : (tensor<i32>) -> tensor<8xf32>
      %d = stablehlo.constant dense<4.0> : tensor<8xf32>
      %e = sdy.constant dense<4.0> : tensor<8xf32>
      %f = sdy.constant dense<4.0> : tensor<8xf32>
      %1 = stablehlo.add %a, %d : tensor<8xf32>
      %2 = stablehlo.add %1, %e : tensor<8xf32>
      %3 = stablehlo.add %2, %f : tensor<8xf32>
      %4 = stablehlo.add %3, %0 : tensor<8xf32>
      return %4 : tensor<8xf32>
    }
    func.func @regions(%arg0: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%arg0 init: %zero) applies stablehlo.add across dimensions = [0]
          : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %1 = stablehlo.reduce(%arg0 init: %zero) applies stablehlo.add across dimensions = [0]
          : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %2 = stablehlo.reduce(%arg0 init: %zero) applies stablehlo.maximum across dimensions = [0]
          : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %3 = stablehlo.add %0, %1 : tensor<f32>
      return %3, %2 : tensor<f32>, tensor<f32>
    }
    func.func @what_folds_elsewhere(%arg0: tensor<8xf32>)
        -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) {
      %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<8xf32>
      %1 = stablehlo.transpose %0, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
      %2 = stablehlo.slice %arg0 [0:8] : (tensor<8xf32>) -> tensor<8xf32>
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<f32>
      %3 = stablehlo.add %one, %two : tensor<f32>
      %4 = stablehlo.tuple %1, %2 : tuple<tensor<8xf32>, tensor<8xf32>>
      %5 = stablehlo.get_tuple_element %4[0] : (tuple<tensor<8xf32>, tensor<8xf32>>) -> tensor<8xf32>
      return %1, %2, %5, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>
    }
"""


def compare(text: str, name: str) -> None:
    """Check that our pass and MLIR's give the same module for `text`, or both refuse it."""
    module = parse(text)
    for step in parse_pipeline(name):
        step.apply(context(), module)
    try:
        expected = oracle(text, name)
    except OracleError:
        with pytest.raises(DiagnosticError):
            verify(module)
    else:
        if (ours := format(module)) != expected:
            assert_same(ours, expected)


@pytest.fixture(scope="module")
def programs() -> list[str]:
    lowered_programs = [lowered(name).pretty for name in sample(PROGRAMS, one_in=9)]
    return [EXAMPLE.read_text(), DEAD, TWICE, *lowered_programs]


@pytest.mark.parametrize("name", PASSES)
def test_programs(name: str, programs: list[str]) -> None:
    for text in programs:
        compare(text, name)


# These modules contain no calls; `inline` is tested on calls by lit tests.
@pytest.mark.parametrize("name", [*PASSES, "inline"])
def test_random_modules(name: str) -> None:
    for seed in SEEDS:
        compare(random_module(seed), name)


@pytest.mark.parametrize("name", PASSES)
def test_random_modules_with_reshards(name: str) -> None:
    for seed in SEEDS[::10]:
        text = oracle(
            random_module(seed),
            "func.func(sdy-sink-data-flow-edges)",  # programs have none before the pipeline adds them
            "sdy-propagation-pipeline",
            "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
        )
        compare(text, name)
