"""The command sdy-run: its account, and its errors on wrong input."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from sdy.ir.walking import operations_of
from sdy.passes import layouts
from sdy.passes.driver import partition
from sdy.stablehlo import AllReduceOp
from sdy.tools import sdy_run

PROGRAM = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
MANUAL = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%arg1: tensor<2xf32>) {
    sdy.return %arg1 : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def test_account_of_a_program(program: Path, capsys: pytest.CaptureFixture[str]):
    assert sdy_run.main([str(program)]) == 0
    out = words(capsys.readouterr().out)
    assert "operations 7 " in out
    assert "shardings 1 given," in out
    assert "mesh @mesh x=4" in out
    assert "devices 4 x" in out
    assert "all-reduce 24 in 1" in out
    assert all(f" {stage} 0." in out for stage in ("parse", "propagate", "partition"))
    assert "largest difference from the unpartitioned program: " in out


def test_inputs_from_a_file(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    np.savez(tmp_path / "inputs.npz", arg0=np.full((8, 4), 2, np.float32))
    assert sdy_run.main([str(program), "--inputs", str(tmp_path / "inputs.npz")]) == 0
    assert "program: 0 (result 0, whose largest element is 16)" in capsys.readouterr().out


def test_comparison_can_be_left_out(program: Path, capsys: pytest.CaptureFixture[str]):
    assert sdy_run.main([str(program), "--no-check"]) == 0
    assert "not compared with the unpartitioned program" in capsys.readouterr().out


def test_a_program_of_each_device_is_compared_with_what_xla_makes_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "manual.mlir").write_text(MANUAL)
    assert sdy_run.main([str(tmp_path / "manual.mlir"), "--check"]) == 0
    assert "largest difference from the program as XLA partitions it: 0 (result 0" in capsys.readouterr().out


def test_wrong_result_names_its_element_and_operation(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Each device keeps its own shard of the sum."""

    def partition_badly(module: ModuleOp) -> None:
        partition(module)
        for op in operations_of(module, AllReduceOp):
            Rewriter.replace_op(op, [], op.operands)

    monkeypatch.setattr(layouts, "partition", partition_badly)
    assert sdy_run.main([str(program)]) == 1
    out = capsys.readouterr().out
    assert f"{program}:4:24: error: 'stablehlo.reduce' op result 0 is wrong: element [0] is " in out
    assert "rounding explains" in out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert sdy_run.main([str(program)]) == 1
    assert "\x1b[1;31mlargest difference" in capsys.readouterr().out
    assert sdy_run.main([str(program), "--no-check"]) == 0


def test_rounding_error_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Differences from a mean sum to rounding errors, which depend on the order of summation."""
    path = tmp_path / "centered.mlir"
    path.write_text("""\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<8x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<4096.0> : tensor<8xf32>
  %2 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<8x4096xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.divide %2, %1 : tensor<8xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<8xf32>) -> tensor<8x4096xf32>
  %5 = stablehlo.subtract %arg0, %4 : tensor<8x4096xf32>
  %6 = stablehlo.reduce(%5 init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<8x4096xf32>, tensor<f32>) -> tensor<8xf32>
  return %6 : tensor<8xf32>
}
""")
    assert sdy_run.main([str(path)]) == 0
    told = re.search(r"program: (\S+) \(result 0, whose largest element is (\S+)\)", capsys.readouterr().out)
    assert told is not None
    assert float(told[1]) > float(told[2]) / 100


def test_numbers_that_nothing_determines_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "drawn.mlir"
    path.write_text("""\
func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.constant dense<4> : tensor<1xi64>
  %1 = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.constant dense<1.0> : tensor<f32>
  %3 = stablehlo.rng %1, %2, %0, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %4 = stablehlo.add %arg0, %3 : tensor<4xf32>
  return %4, %arg0 : tensor<4xf32>, tensor<4xf32>
}
""")
    assert sdy_run.main([str(path)]) == 0
    captured = capsys.readouterr()
    assert f"{path}:5:8: warning: 'stablehlo.rng' op draws different numbers in each run" in captured.err
    assert "result 0 is not compared" in captured.err
    assert "largest difference from the unpartitioned program: 0 (result 1" in captured.out


def test_fresh_process_creates_enough_devices(program: Path):
    """No jax settings, on a machine with one device."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    }
    command = [sys.executable, "-c", "import sys; from sdy.tools.sdy_run import main; sys.exit(main())", str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "devices 4 x cpu" in words(done.stdout)
    assert "largest difference" in done.stdout
    few = subprocess.run([*command, "--devices", "2"], env=environment, capture_output=True, text=True, check=False)
    assert few.returncode == 2
    assert "mesh has 4 devices, but --devices is 2" in few.stderr
    assert "sdy-opt -sdy-propagation-pipeline -sdy-partition-pipeline prints" in few.stderr
    assert "Traceback" not in few.stderr


@pytest.mark.parametrize(
    "settings",
    [{"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, {"JAX_NUM_CPU_DEVICES": "3"}],
    ids=lambda settings: next(iter(settings)),
)
def test_a_mesh_larger_than_the_environment_asks_for_gets_its_devices(settings: dict[str, str], program: Path):
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    }
    script = "import sys; from sdy.tools.sdy_run import main; sys.exit(main())"
    command = [sys.executable, "-c", script, str(program), "--no-check"]
    done = subprocess.run(command, env=environment | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "devices 4 x cpu" in words(done.stdout)


def test_a_platform_without_devices_is_an_error(program: Path):
    environment = os.environ | {"JAX_PLATFORMS": "cuda"}
    command = [sys.executable, "-c", "import sys; from sdy.tools.sdy_run import main; sys.exit(main())", str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: jax finds no devices with JAX_PLATFORMS='cuda'" in done.stderr
    assert "Traceback" not in done.stderr


PARTIAL_RESULTS = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %c: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}], unreduced={"x"}>})
    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>}, tensor<4x4xf32>) {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>}
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = sdy.sharding_constraint %c <@mesh, [{"y"}, {}]> : tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}
"""


def test_partial_results_are_passed_and_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "partial.mlir"
    path.write_text(PARTIAL_RESULTS)
    assert sdy_run.main([str(path)]) == 0
    assert "largest difference from the unpartitioned program" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("size", "devices", "message"),
    [(4096, (), "has 4096 devices, but 8 are available"), (8, ("--devices", "2"), "has 8 devices, but --devices is 2")],
)
def test_mesh_with_too_many_devices_is_refused_early(
    size: int, devices: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "large.mlir"
    path.write_text(f'sdy.mesh @mesh = <["x"={size}]>\nfunc.func @main(%0: tensor<?xf32>) {{\n  return\n}}\n')
    assert sdy_run.main([str(path), *devices]) == 2  # of a program that propagation would refuse
    assert message in capsys.readouterr().err


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "bad.mlir:1:1: error: the file is empty"),
    "binary": (b"\x7fELF\x02\x01\x00\xff\xfe", "error:"),
    "not MLIR": (b"hello world\n", "bad.mlir:1:1: error:"),
    "truncated": (PROGRAM[:200].encode(), "bad.mlir:"),
    "wrong": (PROGRAM.replace("-> tensor<4xf32>\n  return", "-> tensor<5xf32>\n  return").encode(), "bad.mlir:4:"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_told(content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "bad.mlir"
    path.write_bytes(content)
    assert sdy_run.main([str(path)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_files_that_cannot_be_read_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for path in (tmp_path, tmp_path / "missing.mlir"):
        assert sdy_run.main([str(path)]) == 2
        assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--devices", "0"], "'0' is not a positive integer"),
        (["--devices", "many"], "'many' is not a positive integer"),
        (["--seed", "-1"], "'-1' is not a nonnegative integer"),
        (["--sed", "1", "--frobnicate"], "--frobnicate"),
    ],
)
def test_wrong_flags_are_named(program: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        sdy_run.main([str(program), *flags])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_help_tells_what_there_is(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        sdy_run.main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(flag in out for flag in ("--devices", "--seed", "--inputs", "--check", "--no-check", "examples:"))


def test_interrupt_ends_quietly(program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sdy_run, "propagated_layouts", interrupted)
    assert sdy_run.main([str(program)]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_mesh_of_more_devices_than_can_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "large.mlir"
    path.write_text(PROGRAM.replace('"x"=4', '"x"=100000').replace("tensor<8x4xf32>", "tensor<100000x4xf32>"))
    assert sdy_run.main([str(path)]) == 2
    assert f"{path}: error: the program's mesh has 100000 devices" in capsys.readouterr().err
