"""The tool `sdy-auto`."""

from functools import partial
from pathlib import Path

import pytest

import sdy
from descent_programs import UNEVEN_PRODUCT, argument_dims, train_step
from sdy.passes.jax import measured_hardware
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.tools import sdy_auto


def test_the_tool_shows_the_plan_and_writes_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "step.mlir", tmp_path / "sharded.mlir"
    path.write_text(train_step(1, 4096, 256, 1024))
    words = [str(path), "--mesh", "data=4,model=2", "--hardware", "tpu-v5p", "--time-limit", "5", "-o", str(output)]
    picture = tmp_path / "front.svg"
    assert sdy_auto.main([*words, "--front", str(picture)]) == 0
    assert picture.read_text().startswith("<svg")
    shown = capsys.readouterr().out
    assert "data=4, model=2" in shown
    assert "data parallel over data, model" in shown
    module = sdy.parse(output.read_text())
    assert '"data"' in argument_dims(module)[2][0]
    sdy.propagate(module)
    sdy.partition(module)


def test_the_tool_leaves_results_to_propagation_if_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "step.mlir", tmp_path / "sharded.mlir"
    path.write_text(UNEVEN_PRODUCT)
    words = [str(path), "--mesh", "model=8", "--hardware", "tpu-v5p", "-o", str(output)]
    for more, are_chosen in (([], True), (["--arguments-only"], False)):
        assert sdy_auto.main([*words, *more]) == 0
        assert ('[{}, {"model"}]' in capsys.readouterr().out) is are_chosen
        body = output.read_text().partition("{sdy.sharding")[2].partition("stablehlo")[2]
        assert ("#sdy.sharding_per_value" in body) is are_chosen


def test_the_tool_chooses_the_shape_of_the_mesh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(train_step(1, 4096, 256, 1024))
    assert sdy_auto.main([str(path), "--devices", "4", "--hardware", "tpu-v5p", "--time-limit", "6"]) == 0
    shown = capsys.readouterr().out
    assert "data=4 " in shown
    assert "data=2, model=2" in shown


@pytest.mark.parametrize("mesh", ["data", "data=0", "data=2,data=2", "=2", "data=x"])
def test_the_tool_refuses_what_is_no_mesh(mesh: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sdy_auto.main(["x.mlir", "--mesh", mesh])
    assert "is not a mesh: write its axes, major first, as data=4,model=2" in capsys.readouterr().err


def test_the_devices_at_hand_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_small_sizes = partial(measured_hardware.measured_hardware, size=64, most_bytes=2**14)
    monkeypatch.setattr(measured_hardware, "measured_hardware", of_small_sizes)
    path = tmp_path / "mine.toml"
    assert sdy_auto.main(["--measure", "-o", str(path)]) == 0
    hardware = hardware_of(str(path))
    assert hardware.links[0][0] == 8
    assert hardware.memory > 2**20
    assert hardware.peak_of("f32") > 1e6


@pytest.mark.parametrize("words", [[], ["--measure", "x.mlir"]])
def test_the_tool_takes_a_program_or_measures(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sdy_auto.main(words)
    assert "give either a program or --measure" in capsys.readouterr().err
