"""Reading and writing of MLIR bytecode, portable artifacts of StableHLO, and exports of `jax.export`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from samples import covering
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import main_function
from sdy.text import bytecode
from sdy.text.printing.versions import SYNTAX
from sdy.tools import sdy_lint, sdy_opt, sdy_report

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer.mlir"
VERSIONS = ("0.9.0", "1.0.0", "1.9.0")
"""Releases of StableHLO."""

TEXT = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{}]> : tensor<4xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""

PRODUCT = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""


@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_a_program_comes_back_with_its_shardings_and_locations(version: str | None):
    module = sdy.parse(TEXT, "program.mlir")
    data = sdy.to_bytecode(module, version)
    assert data.startswith(b"ML\xefR")
    assert (version is None) == (b"StableHLO_v" not in data)
    assert sdy.format(sdy.parse(data), debuginfo=True) == sdy.format(module, debuginfo=True)


@pytest.mark.parametrize("flag", ["--emit-bytecode", "--target-version=1.9.0"])
def test_sdy_opt_writes_what_it_reads(flag: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    program, written = tmp_path / "program.mlir", tmp_path / "program.mlirbc"
    program.write_text(PRODUCT)
    assert sdy_opt.main([str(program), "-sdy-propagation-pipeline", flag, "-o", str(written)]) == 0
    assert sdy_opt.main([str(program), "-sdy-propagation-pipeline", flag]) == 0
    sys.stdout.flush()
    assert written.read_bytes() == capfdbinary.readouterr().out
    assert sdy_opt.main([str(written), "-o", str(tmp_path / "again.mlir")]) == 0
    again = sdy.parse((tmp_path / "again.mlir").read_text())
    assert sdy.to_bytecode(again, "1.9.0")
    assert sdy_report.main([str(written), "-o", str(tmp_path / "report.html")]) == 0
    assert b"program.mlir:" in capfdbinary.readouterr().out


def saved_by_export() -> bytes:
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    split = NamedSharding(mesh, P("x"))
    exported = export.export(jax.jit(lambda x: x + 1, in_shardings=split))(np.zeros(8, np.float32))
    return bytes(exported.serialize())


def test_saved_export_is_read_with_its_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("flatbuffers")
    path = tmp_path / "saved"
    path.write_bytes(saved_by_export())
    module = sdy.parse(path.read_bytes(), str(path))
    text = sdy.format(module)
    assert "mhlo.num_partitions = 8" in text
    assert 'sdy.mesh @mesh = <["x"=8]>' in text
    assert sdy_opt.main([str(path)]) == 0
    assert capsys.readouterr().out == text


@covering
@pytest.mark.parametrize("main", [sdy_opt.main, sdy_report.main, sdy_lint.main])
@pytest.mark.parametrize("size", [4, 60, 250])
def test_truncated_export_is_an_error(
    size: int, main: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("flatbuffers")
    path = tmp_path / "saved"
    path.write_bytes(saved_by_export()[:size])
    assert main([str(path)]) == 2
    assert capsys.readouterr().err == (
        f"{path}:1:1: error: this looks like an artifact of jax.export but cannot be read: "
        "its bytes are damaged or truncated\n"
    )


def test_export_converts_to_a_module_with_devices_and_names():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    split = NamedSharding(mesh, P("x"))
    exported = export.export(jax.jit(lambda params: params["w"] + params["b"], in_shardings=split))(
        {"w": np.zeros(8, np.float32), "b": np.zeros(8, np.float32)}
    )
    module = sdy.from_jax(exported)
    assert "mhlo.num_partitions = 8" in sdy.format(module)
    assert argument_names(main_function(module)) == ["argument 0 (params['b'])", "argument 1 (params['w'])"]
    again = sdy.from_jax(export.deserialize(bytearray(exported.serialize())))
    assert sdy.format(again, debuginfo=True) == sdy.format(module, debuginfo=True)
    with pytest.raises(TypeError, match="already has its arguments"):
        sdy.from_jax(exported, np.zeros(8))


def test_quantized_types_are_written():
    quantized = "tensor<2x!quant.uniform<i8:f32, 1.000000e+00:17>>"
    module = sdy.parse(
        f"func.func @main(%0: {quantized}) -> tensor<2xf32> {{\n"
        f"  %1 = stablehlo.uniform_dequantize %0 : ({quantized}) -> tensor<2xf32>\n  return %1 : tensor<2xf32>\n}}"
    )
    for version in (None, "1.9.0"):
        assert sdy.format(sdy.parse(sdy.to_bytecode(module, version))) == sdy.format(module)


def test_attribute_that_jaxlib_would_drop_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bytecode, "installed_syntax", lambda: SYNTAX[0, 10])
    module = sdy.parse(
        'sdy.mesh @mesh = <["x"=2]>\n'
        "func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %1 = sdy.all_reduce max {"x"} %0 out_sharding=<@mesh, [{}]> : tensor<4xf32>\n'
        "  return %1 : tensor<4xf32>\n}",
        "in.mlir",
    )
    with pytest.raises(sdy.DiagnosticError, match=r"in.mlir:3:8: error: 'sdy.all_reduce' op has 'reduction_op', which"):
        sdy.to_bytecode(module)


def test_an_artifact_of_a_version_to_come_says_so():
    later = sdy.to_bytecode(sdy.parse(TEXT), "1.9.0").replace(b"StableHLO_v1.9.0", b"StableHLO_v9.9.9")
    with pytest.raises(
        sdy.DiagnosticError, match=r"it requires StableHLO 9.9.9, but the installed jaxlib supports up to 1\."
    ):
        sdy.parse(later[:200], "later.mlirbc")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ["--emit-bytecode", "--split-input-file"],
            "'--split-input-file' applies to MLIR text, but the output is bytecode",
        ),
        (
            ["--target-version=1.9.0", "--sdy-explain=0"],
            "'--sdy-explain' applies to MLIR text, but the output is bytecode",
        ),
        (["--target-version=newest"], "expected a version of StableHLO such as 1.13.0, got 'newest'"),
        (
            ["--emit-hlo", "--sdy-model-explorer"],
            "'--sdy-model-explorer' applies to MLIR text, but the output is HLO as text",
        ),
        (["--emit-hlo-proto", "--emit-bytecode"], "conflicting output formats: HLO as a proto and bytecode"),
        (["--target-version"], "'--target-version' requires a value"),
    ],
)
def test_flags_that_do_not_fit(flags: list[str], problem: str, capsys: pytest.CaptureFixture[str]):
    assert sdy_opt.main([str(EXAMPLE), *flags]) == 2
    assert capsys.readouterr().err == f"sdy-opt: {problem}\n"


@pytest.mark.parametrize(
    ("body", "version", "problem"),
    [
        ("", "99.0.0", "StableHLO 99.0.0: the installed jaxlib writes versions 0.9.0 to "),
        ("%1 = arith.addi %0, %0 : i32", "1.9.0", "in.mlir:2:8: error: .* 'arith.addi' has no portable form"),
        ("%1 = stablehlo.constant dense<0.0> : tensor<f4E2M1FN>", "1.0.0", "failed to legalize operation"),
    ],
    ids=["version", "dialect", "type"],
)
def test_operation_newer_than_the_target_version_is_an_error(body: str, version: str, problem: str):
    module = sdy.parse(f"func.func @main(%0: i32) {{\n  {body}\n  return\n}}", "in.mlir")
    with pytest.raises(sdy.DiagnosticError, match=problem):
        sdy.to_bytecode(module, version)


@pytest.mark.parametrize("size", [4, 200], ids=["beginning", "part"])
def test_damaged_bytecode_is_an_error_that_names_the_file(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, output = tmp_path / "program.mlirbc", tmp_path / "output"
    path.write_bytes(sdy.to_bytecode(sdy.parse(TEXT))[:size])
    for main in (sdy_opt.main, sdy_report.main, sdy_lint.main):
        assert main([str(path)]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"{path}:1:1: error: this looks like MLIR bytecode but cannot be read: ")
        assert "Traceback" not in told
    assert sdy_opt.main([str(path), "-o", str(output)]) == 2
    assert not output.exists()


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "jaxlib was terminated by SIGSEGV"),
        ("import sys; sys.exit(9)", "jaxlib exited with status 9"),
        ("import time; time.sleep(100)", "jaxlib did not finish within 1 seconds"),
        ("import sys; sys.stdout.buffer.write(b'module {\\xff}')", "'utf-8' codec can't decode byte 0xff"),
    ],
    ids=["crash", "exit", "hang", "no text"],
)
def test_jaxlib_crash_is_an_error(program: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "program.py"
    path.write_text(program)
    monkeypatch.setattr(bytecode, "_CONVERTER", path)
    monkeypatch.setattr(bytecode, "_TIMEOUT", 1)
    with pytest.raises(sdy.DiagnosticError, match=f"in.mlirbc:1:1: error: this looks like MLIR bytecode .*: {problem}"):
        sdy.parse(b"ML\xefR", "in.mlirbc")


def test_bytecode_is_read_without_jaxlib_in_this_process(tmp_path: Path):
    path = tmp_path / "program.mlirbc"
    path.write_bytes(sdy.to_bytecode(sdy.parse(TEXT)))
    run = f"import sys, sdy; sdy.parse(open({str(path)!r}, 'rb').read()); print('jaxlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_bytes_of_a_text_are_read_as_text():
    assert sdy.format(sdy.parse(TEXT.encode())) == sdy.format(sdy.parse(TEXT))
