"""xDSL's own tool runs each pass with its options, and prints the same as sdy-opt."""

import dataclasses
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.exceptions import DiagnosticException
from xdsl.xdsl_opt_main import xDSLOptMain

import sdy
from sdy.diagnostics import DiagnosticError
from sdy.passes.catalog import PASSES
from sdy.passes.driver import run_passes
from sdy.passes.options import create_pass
from sdy.passes.spec import parse_pipeline
from sdy.passes.universe import SDY_UNIVERSE, for_xdsl_opt, universe

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w: tensor<16x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x16xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""

TEXTS = {"hardware": "h100-8", "memory": "16000000000", "time_limit": "2"}
"""Values of the options that do not accept any text."""


def _text(option: str, kind: Any) -> str:
    if option in TEXTS:
        return TEXTS[option]
    if kind in (bool, int):
        return {bool: "true", int: "2"}[kind]
    return get_args(kind)[-1] if get_origin(kind) not in (None, tuple) else "x"


def _specs() -> list[tuple[str, str, str]]:
    """Return the name, option and value of each pass alone and with each of its options."""
    specs: list[tuple[str, str, str]] = []
    for name, load in PASSES.items():
        kinds = get_type_hints(pass_class := load())
        specs.append((name, "", ""))
        specs += [
            (name, field.name.replace("_", "-"), _text(field.name, kinds[field.name]))
            for field in dataclasses.fields(pass_class)
        ]
    return specs


@pytest.mark.parametrize(("name", "option", "value"), _specs())
@pytest.mark.filterwarnings("ignore::sdy.ShardingWarning")
def test_passes_and_options_are_those_of_sdy_opt(
    name: str, option: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    spec = f"{name}{{{option}={value}}}" if option else name
    ours, theirs = sdy.parse(PROGRAM), sdy.parse(PROGRAM)
    pipeline = PassPipeline.parse_spec({name: for_xdsl_opt(PASSES[name])}, spec)
    expected = create_pass(name, {option: value} if option else {})
    assert dataclasses.asdict(pipeline.passes[0]) == dataclasses.asdict(expected)
    if (refusal := _refusal(ours, spec)) is not None:
        with pytest.raises(DiagnosticException, match=re.escape(refusal)):
            pipeline.apply(Context(), theirs)
    else:
        pipeline.apply(Context(), theirs)
        assert sdy.format(theirs) == sdy.format(ours)


def _refusal(module: ModuleOp, spec: str) -> str | None:
    """Run the passes as sdy-opt does and return the error message, if any."""
    try:
        run_passes(module, parse_pipeline(spec))
    except DiagnosticError as problem:
        return problem.message
    return None


@pytest.mark.parametrize(
    "spec",
    [
        "sdy-propagation-pipeline,sdy-partition-pipeline",
        "sdy-propagation-pipeline,canonicalize,cse,sdy-partition-pipeline{enable-rgv3=true},dce",
    ],
)
def test_pipelines_go_with_those_of_xdsl(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "program.mlir").write_text(PROGRAM)
    xDSLOptMain(args=["-p", spec, str(tmp_path / "program.mlir")]).run()
    found = sdy.parse(capsys.readouterr().out)
    ours = sdy.parse(PROGRAM)
    run_passes(ours, parse_pipeline(spec.removesuffix(",dce")))
    assert sdy.format(found) == sdy.format(ours)


def test_both_regions_of_a_loop_name_its_values_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The text defines the values of a loop once, in front of its condition and its body."""
    module = sdy.parse("""
        func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<i32>, tensor<4xf32>) {
          %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<4xf32>
          cond {
            %1 = stablehlo.compare NE, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          } do {
            %1 = stablehlo.add %i, %n : tensor<i32>
            %2 = stablehlo.add %y, %y : tensor<4xf32>
            stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
          }
          return %0#0, %0#1 : tensor<i32>, tensor<4xf32>
        }
    """)
    assert sdy.format(sdy.parse(str(module))) == sdy.format(module)
    if find_spec("xdsl_jax") is None:  # whose loop xdsl-opt would print
        (tmp_path / "program.mlir").write_text(sdy.format(module))
        xDSLOptMain(args=[str(tmp_path / "program.mlir")]).run()
        assert sdy.format(sdy.parse(capsys.readouterr().out)) == sdy.format(module)


def test_a_refusal_is_one_of_xdsl(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "program.mlir").write_text(PROGRAM)
    words = ["--verify-diagnostics", "-p", "sdy-auto-partition{memory=much}", str(tmp_path / "program.mlir")]
    xDSLOptMain(args=words).run()
    assert "error: 'much' is not a size: bytes, or a number with K, M, G or T" in capsys.readouterr().out


def test_an_unknown_option_is_named_with_the_nearest(tmp_path: Path):
    with pytest.raises(DiagnosticError, match="did you mean 'hardware'"):
        xDSLOptMain(args=["-p", "sdy-auto-partition{hardwere=h100-8}", str(tmp_path / "program.mlir")])


def test_universe_omits_names_of_other_packages():
    assert not SDY_UNIVERSE.all_passes.keys() & XDSL_UNIVERSE.all_passes.keys()
    other = Universe(
        all_dialects={"stablehlo": SDY_UNIVERSE.all_dialects["sdy"]}, all_passes={"sdy-plain": PASSES["cse"]}
    )
    left = universe([other])
    assert left.all_dialects.keys() == {"sdy", "chlo"}
    assert left.all_passes.keys() == PASSES.keys() - {"sdy-plain"}
