"""Single-device shardings (maximal shardings) leave a tensor's dimensions unsharded."""

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

import sdy
from oracle import assert_same, oracle
from propagation_modules import MODULES
from sdy.diagnostics import DiagnosticError, capture
from sdy.passes.catalog import PASSES
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline

_SHARDING = re.compile(r"<@\w+, \[[^\[\]]*\]>")
_CONCATENATION = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %y: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.concatenate %x, %y, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
"""
_RESULT = """
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @single = <[], device_ids=[0]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@single, []>}) {
  return %x : tensor<4xf32>
}
"""
_ON_ONE_DEVICE = """
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @single = <[], device_ids=[0]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@single, []>]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def _with_one_on_a_single_device(text: str) -> Iterator[str]:
    """Yield `text` with each of its shardings in turn made single-device, if it still parses."""
    for found in _SHARDING.finditer(text):
        mesh = "sdy.mesh @single = <[], device_ids=[0]>\n"
        changed = f"{mesh}{text[: found.start()]}<@single, []>{text[found.end() :]}"
        with suppress(DiagnosticError):
            sdy.parse(changed)
            yield changed


CHANGED = [
    changed
    for text in (MODULES["chain"], MODULES["manual computation"], _CONCATENATION)
    for changed in _with_one_on_a_single_device(text)
]


@pytest.mark.parametrize("name", [name for name in PASSES if name != "sdy-save-module"])
def test_each_pass_takes_or_refuses_it_anywhere(name: str):
    assert len(CHANGED) > 10
    for text in CHANGED:
        with capture(), suppress(DiagnosticError):
            run_passes(sdy.parse(text), parse_pipeline(f"builtin.module({name})"))


def test_it_divides_what_it_is_on_as_in_the_oracle():
    module = sdy.parse(_RESULT)
    name = "sdy-update-non-divisible-input-output-shardings"
    run_passes(module, parse_pipeline(f"builtin.module({name})"))
    assert_same(sdy.format(module), oracle(_RESULT, name))


def test_single_device_result_is_refused_with_mlir_message():
    with pytest.raises(DiagnosticError, match=r"function result 0 cannot have a single-device \(maximal\) sharding"):
        sdy.propagate(sdy.parse(_RESULT))


def test_an_operation_on_a_single_device_is_not_split_by_hand():
    (negate,) = (op for op in sdy.parse(_ON_ONE_DEVICE).walk() if op.name == "stablehlo.negate")
    with pytest.raises(DiagnosticError, match="result 0 is on a single device"):
        sdy.split(negate, operand=0, dim=0, axis="x")
