"""The import and export passes on the inputs of their lit tests, compared with the C++: errors, warnings and files."""

import re
from pathlib import Path

import pytest

from cxx_versions import SINCE, lacks
from oracle import assert_same, oracle
from sdy.diagnostics import DiagnosticError, capture
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline
from sdy.text import context, format, parse

ROOT = Path(__file__).parents[2]

ON_FUNCTIONS = {
    "sdy-constant-or-scalar-merger",
    "sdy-drop-sharding-rules",
    "sdy-remove-all-gather-reduce-scatter-for-cmv1",
    "sdy-sharding-constraint-to-reshard",
    "sdy-sink-data-flow-edges",
    "sdy-sink-func-data-flow-edges",
}
TESTED_ELSEWHERE = {
    "sdy-expand-operations",
    "sdy-insert-explicit-reshards",
    "sdy-insert-func-call-reshards",
    "sdy-prepare-pipeline",
    "sdy-reshard-to-collectives",
    "sdy-rewrite-as-hlo",
    "sdy-split-triangular-solves",
    "sdy-user-priority-propagate",
    "sdy-verify-unreduced-axes",
}

_SINCE = {
    "sdy-apply-sharding-constraints": "returned ends of chains",
    "sdy-propagate-to-func-results": "main's results",
}
"""C++ passes that differ from ours since some version."""


def run(text: str, passes: str) -> str:
    module = parse(text)
    for step in parse_pipeline(passes):
        step.apply(context(), module)
    return format(module)


def lit_tests() -> list[tuple[Path, str]]:
    """Return the inputs of a pass's lit tests, with the pass and its options."""
    found: list[tuple[Path, str]] = []
    for path in sorted(ROOT.glob("lit_tests/[ie][mx]porting/*.mlir")):
        for name, options in re.findall(r"// RUN: sdy-opt %s -(sdy-[\w-]+)(?:='([^']*)')? \|", path.read_text()):
            step = f"{name}{{{options}}}" if options else name
            if name not in TESTED_ELSEWHERE:
                found.append((path, f"func.func({step})" if name in ON_FUNCTIONS else step))
    return found


@pytest.mark.parametrize(("path", "step"), lit_tests())
def test_the_inputs_of_the_lit_tests(path: Path, step: str) -> None:
    if step in _SINCE and not lacks(_SINCE[step]):
        pytest.skip(f"the C++ does otherwise: {SINCE[_SINCE[step]][1]}")
    assert_same(run(path.read_text(), step), oracle(path.read_text(), step))


def test_a_second_call_of_a_function_warns() -> None:
    text = """
        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          return %arg0 : tensor<8xf32>
        }
    """
    with capture() as diagnostics:
        ours = run(text, "sdy-import-func-calls")
    assert_same(ours, oracle(text, "sdy-import-func-calls"))
    assert [diagnostic.message for diagnostic in diagnostics] == [
        "function @f has multiple call ops, we need to clone the function body for each call"
    ]


@pytest.mark.parametrize(
    ("given", "is_replaced"),
    [
        ("[{?}, {?}]", True),
        ("[{?}, {}]", False),
        ("[{}, {}]", False),
        ('[{"y", ?}, {?}]', False),
        ('[{?}, {?}], replicated={"y"}', False),
    ],
)
def test_a_constraint_replaces_an_empty_open_sharding(given: str, is_replaced: bool) -> None:
    text = f"""
        sdy.mesh @mesh = <["x"=2, "y"=2]>
        func.func @main(%arg0: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {given}>}}) -> tensor<8x8xf32> {{
          %0 = sdy.sharding_constraint %arg0 <@mesh, [{{"x"}}, {{}}]> : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}
        func.func @edge(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
          %0 = stablehlo.optimization_barrier %arg0 : tensor<8x8xf32>
          %1 = sdy.data_flow_edge %0 sharding=<@mesh, {given}> : tensor<8x8xf32>
          %2 = sdy.sharding_constraint %1 <@mesh, [{{"x"}}, {{}}]> : tensor<8x8xf32>
          return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
        }}
        func.func @chain(%arg0: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {given}>}}) -> tensor<8x8xf32> {{
          %0 = sdy.sharding_constraint %arg0 <@mesh, [{{"x", ?}}, {{}}]> : tensor<8x8xf32>
          %1 = sdy.sharding_constraint %0 <@mesh, [{{"y"}}, {{}}]> : tensor<8x8xf32>
          %2 = stablehlo.negate %arg0 : tensor<8x8xf32>
          return %2 : tensor<8x8xf32>
        }}
    """
    step = "sdy-apply-sharding-constraints"
    ours = run(text, step)
    replaced = '@main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})'
    assert [part in ours for part in (replaced, "return %2, %2 : ", "stablehlo.negate %1 : ")] == [is_replaced] * 3
    if not (is_replaced and lacks("shardings that tell nothing")):
        assert_same(ours, oracle(text, step))


GROUPS_OF_DIFFERENT_SHAPES = """
    func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>) {
      sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
      sdy.sharding_group %arg1 group_id=1 : tensor<4xf32>
      return
    }
"""
GROUP_ACROSS_MANUAL_COMPUTATION = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
      %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={}
          (%arg1: tensor<8xf32>) {
        sdy.sharding_group %arg1 group_id=1 : tensor<8xf32>
        sdy.return %arg1 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
"""
MANUAL_AXES_OF_NO_MESH = """
    func.func @main() {
      sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
        %0 = stablehlo.constant dense<1.0> : tensor<f32>
        sdy.return
      } : () -> ()
      return
    }
"""
CALLS_ITSELF = """
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
"""
MAIN_CALLS_ITSELF = """
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @main(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
"""
CALL_EACH_OTHER = """
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @g(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
"""
CALLS_A_DECLARATION = """
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @f(tensor<8xf32>) -> tensor<8xf32>
"""
NO_MAIN = """
    func.func @f() { return }
    func.func @g() { return }
"""


@pytest.mark.parametrize(
    ("text", "step", "line", "message"),
    [
        (GROUPS_OF_DIFFERENT_SHAPES, "sdy-sharding-group-import", 4, "must have the same shape for groupId: 1"),
        (GROUP_ACROSS_MANUAL_COMPUTATION, "sdy-sharding-group-import", 7, "cannot cross ManualComputationOp"),
        (MANUAL_AXES_OF_NO_MESH, "sdy-manual-axes-cleanup", 3, "manual_axes when there are no in/out shardings"),
        (CALLS_ITSELF, "sdy-flatten-call-graph", 7, "'@f' is recursive"),
        (CALL_EACH_OTHER, "sdy-flatten-call-graph", 11, "'@f' is recursive"),
        (MAIN_CALLS_ITSELF, "sdy-import-func-calls", 3, "'@main' is recursive"),
        (CALL_EACH_OTHER, "sdy-import-func-calls", 11, "'@f' is recursive"),
        (CALL_EACH_OTHER, "sdy-propagation-pipeline", 11, "'@f' is recursive"),
        (CALLS_A_DECLARATION, "sdy-import-func-calls", 3, "'@f' cannot be inlined: its body is not a single block"),
        (NO_MAIN, "sdy-propagate-to-func-results", None, "expected a function named @main, or a single function"),
        (NO_MAIN, "sdy-save-module{dump-directory=/nowhere/at/all}", None, "cannot save the module"),
    ],
)
def test_errors_have_a_location(text: str, step: str, line: int | None, message: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(message)) as raised:
        run(text, step)
    if line is not None:
        assert raised.value.where is not None
        assert raised.value.where.line == line


def test_a_module_is_saved(tmp_path: Path) -> None:
    text = "module {\n  func.func @main() {\n    return\n  }\n}\n"
    assert run(text, f"sdy-save-module{{dump-directory={tmp_path} file-name=state dump-index=3}}") == text
    assert (tmp_path / "03.state.mlir").read_text() == text


def test_a_pipeline_saves_intermediate_modules(tmp_path: Path) -> None:
    module = parse((ROOT / "examples/transformer.mlir").read_text())
    run_passes(module, parse_pipeline(f"sdy-propagation-pipeline{{dump-directory={tmp_path}}}"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "01.before_propagation.mlir",
        "02.after_propagation.mlir",
        "03.after_minimal_partitioner_with_global_shapes.mlir",
    ]
