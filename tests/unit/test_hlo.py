"""HLO of programs without SDY operations: the program of each device, for XLA's own tools."""

from pathlib import Path

import pytest
from jaxlib._hlo import HloPrintOptions, XlaComputation, hlo_module_from_text

import sdy
from sdy.passes.driver import run_passes
from sdy.passes.exporting.export_gspmd import ExportGspmdPass
from sdy.passes.partitioning.plain import PlainPass
from sdy.tools import sdy_opt

TEXT = """\
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>, tf.aliasing_output = 0 : i32})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0 = stablehlo.dot %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(TEXT)
    return path


def test_text_and_proto_say_the_same(program: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    passes = ["-sdy-propagation-pipeline", "-sdy-partition-pipeline", "-sdy-plain"]
    written = program.with_suffix(".hlo")
    assert sdy_opt.main([str(program), *passes, "--emit-hlo"]) == 0
    assert sdy_opt.main([str(program), *passes, "--emit-hlo-proto", "-o", str(written)]) == 0
    text = capfdbinary.readouterr().out.decode()
    options = HloPrintOptions()
    assert hlo_module_from_text(text).to_string(options) == text
    assert XlaComputation(written.read_bytes()).get_hlo_module().to_string(options) == text.replace(
        ", num_partitions=4", ""
    )


def test_each_operation_is_for_one_device():
    module = sdy.parse(TEXT)
    sdy.propagate(module)
    sdy.partition(module)
    run_passes(module, [PlainPass()])
    before = sdy.format(module)
    text = sdy.to_hlo_text(module)
    head, *lines = text.splitlines()
    assert head.startswith("HloModule ")
    assert head.endswith(", num_partitions=4")
    done = [line for line in lines if " = " in line]
    assert len(done) >= 4
    assert all("{manual}" in line for line in done)
    assert "f32[4,4]{1,0} parameter(0)" in text
    assert "replica_groups={{0,2},{1,3}}" in text
    assert "input_output_alias" not in head
    assert "buffer_donor={ (1, {}) }" in head
    assert sdy.format(module) == before


def test_constants_are_whole():
    numbers = ", ".join(map(str, range(100)))
    module = sdy.parse(
        "func.func @main() -> tensor<100xi32> {\n"
        f"  %0 = stablehlo.constant dense<[{numbers}]> : tensor<100xi32>\n  return %0 : tensor<100xi32>\n}}"
    )
    assert numbers in sdy.to_hlo_text(module)


def test_shardings_of_gspmd_stay():
    module = sdy.parse(TEXT)
    sdy.propagate(module)
    run_passes(module, [ExportGspmdPass()])
    text = sdy.to_hlo_text(module)
    assert "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}" in text
    assert "manual" not in text


def test_sdy_is_not_in_hlo(program: Path, capsys: pytest.CaptureFixture[str]):
    assert sdy_opt.main([str(program), "--emit-hlo"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{program}:1:1: error: 'sdy.mesh' op ")
    assert "run 'sdy-plain' first" in told


def test_operation_unknown_to_xla_is_an_error():
    module = sdy.parse(
        "func.func @main(%0: i32) -> i32 {\n  %1 = arith.addi %0, %0 : i32\n  return %1 : i32\n}", "in.mlir"
    )
    with pytest.raises(sdy.DiagnosticError, match="the program cannot be written as HLO: "):
        sdy.to_hlo_proto(module)
