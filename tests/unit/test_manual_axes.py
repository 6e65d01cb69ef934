"""Manual axes: detection, and no sharding over them inside a manual computation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

import sdy
from sdy.diagnostics import DiagnosticError
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import set_sharding
from sdy.ir.walking import operations
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.driver import run_passes

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>'
NESTED = f"""{MESH}
func.func @main(%a: tensor<16x8xf32>) -> tensor<16x8xf32> {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>]
      manual_axes={{"x"}} (%b: tensor<8x8xf32>) {{
    %1 = stablehlo.negate %b : tensor<8x8xf32>
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{{"y"}}, {{}}]>] out_shardings=[<@mesh, [{{"y"}}, {{}}]>]
        manual_axes={{"y"}} (%c: tensor<2x8xf32>) {{
      %3 = func.call @f(%c) : (tensor<2x8xf32>) -> tensor<2x8xf32>
      sdy.return %3 : tensor<2x8xf32>
    }} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.return %2 : tensor<8x8xf32>
  }} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}}
func.func private @f(%d: tensor<2x8xf32>) -> tensor<2x8xf32> {{
  %0 = stablehlo.exponential %d : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}}
"""


def op_named(module: ModuleOp, name: str) -> Operation:
    return next(op for op in operations(module) if op.name == name)


@pytest.mark.parametrize(
    ("name", "free"),
    [
        ("sdy.manual_computation", ["x", "y", "z"]),
        ("stablehlo.negate", ["y", "z"]),
        ("func.call", ["z"]),
        ("stablehlo.exponential", ["z"]),
    ],
)
def test_axes_are_free_that_are_manual_nowhere_around(name: str, free: list[str]):
    module = sdy.parse(NESTED)
    axes = ManualAxes(module).free(op_named(module, name), named_meshes(module)["mesh"])
    assert [axis.name for axis in axes] == free


@dataclass(frozen=True)
class SplitAgainPass(ModulePass):
    """Shard the columns of the result of the operation of this name."""

    name = "split-again"
    op_name: str
    axis: sdy.AxisRef

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        set_sharding(op_named(op, self.op_name).results[0], sdy.Sharding.of(None, self.axis))


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("stablehlo.negate", sdy.AxisRef("x")),
        ("stablehlo.exponential", sdy.AxisRef("x")),
        ("stablehlo.exponential", sdy.AxisRef("y", 2, 2)),
    ],
)
def test_no_pass_may_split_a_value_along_its_manual_axes(name: str, axis: sdy.AxisRef):
    message = f'operates on axis "{axis.name}" which is already bound by a parent sdy.manual_computation op'
    with pytest.raises(DiagnosticError, match=message):
        run_passes(sdy.parse(NESTED), [SplitAgainPass(name, axis)])


def test_a_pass_may_split_a_value_along_its_free_axes():
    run_passes(sdy.parse(NESTED), [SplitAgainPass("stablehlo.negate", sdy.AxisRef("y"))])


def test_a_policy_cannot_split_along_a_manual_axis():
    def policy(operations: Sequence[Operation]) -> None:
        for op in operations:
            if op.name == "stablehlo.negate":
                sdy.split(op, operand=0, dim=1, axis="x")

    with pytest.raises(DiagnosticError, match="axis 'x' is manual around it"):
        sdy.propagate(sdy.parse(NESTED), policy)


def test_the_automatic_partitioner_chooses_among_free_axes():
    """Propagation did not terminate when the solver sharded the result of a product over a manual axis."""
    module = sdy.parse("""sdy.mesh @mesh = <["data"=2, "model"=4]>
    func.func @main(%w: tensor<64x64xf32>, %x: tensor<256x64xf32>) -> tensor<256x64xf32> {
      %0 = sdy.manual_computation(%w, %x) in_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{"data", ?}, {?}]>]
          out_shardings=[<@mesh, [{"data", ?}, {?}]>] manual_axes={"data"}
          (%a: tensor<64x64xf32>, %b: tensor<128x64xf32>) {
        %1 = stablehlo.dot %b, %a : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
        %2 = stablehlo.dot %1, %a : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
        sdy.return %2 : tensor<128x64xf32>
      } : (tensor<64x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
      return %0 : tensor<256x64xf32>
    }""")
    w, x = (np.arange(size * 64, dtype=np.float32).reshape(size, 64) % 3 for size in (64, 256))
    sdy.auto(module, hardware="cpu-8")
    sdy.propagate(module)
    sdy.partition(module)
    np.testing.assert_array_equal(sdy.interpret(module, w, x)[0], x @ w @ w)


@pytest.mark.parametrize("manual", ["x", "z"])
@pytest.mark.parametrize("device", [0, 5, 14])
def test_one_device_of_each_part_along_a_manual_axis_computes_alone(manual: str, device: int):
    module = sdy.parse(f"""{MESH}
    sdy.mesh @one = <[], device_ids=[{device}]>
    func.func @main(%a: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}}) -> tensor<8x4xf32> {{
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"{manual}"}}, {{?}}]>]
          out_shardings=[<@mesh, [{{"{manual}"}}, {{?}}]>] manual_axes={{"{manual}"}} (%b: tensor<4x4xf32>) {{
        %1 = stablehlo.negate %b {{sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}} : tensor<4x4xf32>
        %2 = stablehlo.add %1, %b : tensor<4x4xf32>
        %3 = stablehlo.abs %1 {{sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}} : tensor<4x4xf32>
        %4 = stablehlo.subtract %3, %2 : tensor<4x4xf32>
        sdy.return %4 : tensor<4x4xf32>
      }} : (tensor<8x4xf32>) -> tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }}""")
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    sdy.propagate(module)
    sdy.partition(module)
    np.testing.assert_array_equal(sdy.interpret(module, x)[0], x)


def test_devices_along_a_manual_axis_draw_random_numbers_of_their_own():
    """Devices that differ only along free axes have equal numbers, drawn by one of them."""
    module = sdy.parse(f"""{MESH}
    func.func @main() -> tensor<8xf32> {{
      %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{{"x", "y"}}]>]
          manual_axes={{"x", "y"}} () {{
        %low = stablehlo.constant dense<0.0> : tensor<f32>
        %high = stablehlo.constant dense<1.0> : tensor<f32>
        %shape = stablehlo.constant dense<1> : tensor<1xi64>
        %1 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
            : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<1xf32>
        sdy.return %1 : tensor<1xf32>
      }} : () -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}""")
    sdy.propagate(module)
    sdy.partition(module)
    sums = op_named(module, "stablehlo.all_reduce")
    assert "[[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15]]" in str(sums)
