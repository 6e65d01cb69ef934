"""Hardware descriptions: performance of devices and links, from files."""

from pathlib import Path

import pytest

import sdy
from sdy.passes.spmd.costs.hardware import PRECISIONS, hardware_of, presets

GOOD = """
name = "mine"
memory = "2G"
memory_bandwidth = 1e9
[peak]
f32 = 1e12
bf16 = 4e12
[[links]]
devices = 4
bandwidth = 1e10
latency = 1e-6
[[links]]
devices = 1024
bandwidth = 1e9
latency = 1e-5
[axes.slow]
bandwidth = 1e8
latency = 1e-3
"""


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_read(name: str) -> None:
    hardware = hardware_of(name)
    assert hardware.memory >= 2**30
    assert hardware.peak_of("f32") <= hardware.peak_of("i8")


def test_peaks_depend_on_the_precision() -> None:
    """float32 takes one, three or six passes in bfloat16 on a TPU, and TensorFloat-32 or float32 on an H100."""
    tpu, gpu = hardware_of("tpu-v5e"), hardware_of("h100")
    passes = [tpu.peak_of("bf16") / tpu.peak_of("f32", precision) for precision in PRECISIONS]
    assert passes == pytest.approx([1, 3, 6], 1e-3)
    assert [gpu.peak_of("f32", precision) for precision in PRECISIONS] == [494.5e12, 494.5e12, 67e12]


@pytest.mark.parametrize("alias", ["h100-8", "h100-hosts"])
def test_presets_have_the_names_of_earlier_versions(alias: str) -> None:
    assert hardware_of(alias) == hardware_of("h100")


def test_a_type_that_is_not_listed_is_as_slow_as_the_slowest(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert hardware_of(str(path)).peak_of("f64") == 1e12


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('memory = "2G"', "", "'memory' is missing"),
        ('memory = "2G"', 'memory = "much"', "'memory': 'much' is not a size"),
        ('memory = "2G"', "memory = -1", "'memory' must be a number above 0"),
        ("f32 = 1e12", "f32 = { high = 1e12 }", "'peak.f32.default' must be a number above 0"),
        ("f32 = 1e12", "f32 = { low = 1e12 }", "'peak.f32.low' is unknown; the keys are default, high, highest"),
        ("latency = 1e-6", "latency = 1e-6\ntorus = 16", "'links.torus' must be a list of sizes"),
        ("f32 = 1e12", "f32 = true", "'peak.f32' must be a number above 0"),
        ("f32 = 1e12\nbf16 = 4e12", "", "'peak' must be a table of operations a second by element type"),
        ("latency = 1e-6", "", "'links.latency' must be a number above 0"),
        (
            "latency = 1e-6",
            "latencies = 1e-6",
            "'links.latencies' is unknown; the keys are bandwidth, devices, latency, torus, wrap",
        ),
        ("name =", "nam =", "'nam' is unknown; the keys are asynchronous, axes, backend, curves, host, launch, links"),
        ("name =", "pipelines_loops = 1\nname =", "'pipelines_loops' must be true or false"),
        ("[axes.slow]", "[axes]", "'axes' must have a table for each axis"),
        ("[peak]", "[peak", "invalid TOML"),
        ("[peak]", "[reached]\nproduct = 1\n[peak]", "'reached.product' is unknown; the keys are memory, overhead, p"),
        ("[peak]", "[reached]\ntile = [8]\n[peak]", "'reached.tile' must be a list of rows, columns and summed"),
        ("[peak]", "[host]\nbandwidth = 1\n[peak]", "'host.latency' must be a number above 0"),
        ("[peak]", "[host]\nbandwidth = 1\nlatency = 1\nwaits = 1\n[peak]", "'host.waits' must be true or false"),
        ("[peak]", "[reached]\noverhead = -1\n[peak]", "'reached.overhead' must be a number above 0"),
        ("[peak]", "[curves.gather.8]\n[peak]", "'curves.gather' is unknown; the keys are all_gather, all_reduce, all"),
        ("[peak]", "[curves.all_gather.x]\n[peak]", "'curves.all_gather.x': 'x' is not a number of devices"),
        ("[peak]", "[curves]\nall_gather = 3\n[peak]", "'curves' must have a table for each kind and number of"),
        ("[peak]", "[curves.all_gather]\n8 = 3\n[peak]", "'curves.all_gather.8' must be a table"),
        ("[peak]", "[curves.all_gather.8]\nbytes = [1]\n[peak]", "'curves.all_gather.8.seconds' must be a list of num"),
        (
            "[peak]",
            "[curves.all_gather.8]\nbytes = [1]\nseconds = [1, 2]\n[peak]",
            "'curves.all_gather.8.bytes' and 'curves.all_gather.8.seconds' must have equal lengths",
        ),
        (
            "[peak]",
            "[curves.all_gather.8]\nbytes = [2, 1]\nseconds = [1, 1]\n[peak]",
            "'curves.all_gather.8.bytes' must be in ascending order",
        ),
        (
            "[peak]",
            "[curves.all_gather.8]\nbytes = [1]\nseconds = [0]\n[peak]",
            "'curves.all_gather.8.seconds' must be a number above 0",
        ),
        ("memory_b", "launch = 0\nmemory_b", "'launch' must be a number above 0"),
        ("[peak]", 'asynchronous = ["gather"]\n[peak]', "'asynchronous' must be a list of some of all_gather, all_re"),
    ],
)
def test_errors_in_a_hardware_file_are_reported(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(sdy.DiagnosticError, match=problem) as refused:
        hardware_of(str(path))
    assert str(path) in str(refused.value)


def test_unknown_hardware_is_told_with_what_there_is() -> None:
    with pytest.raises(sdy.DiagnosticError, match="no hardware preset or file has this name; the presets are a100, b2"):
        hardware_of("h300")


def test_a_curve_is_a_power_law_between_its_points(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{GOOD}\n[curves.all_gather.8]\nbytes = [100, 400]\nseconds = [1e-3, 4e-3]\n")
    curve = hardware_of(str(path)).curves["all_gather", 8]
    assert [curve.at(size) for size in (10, 100, 200, 400, 800)] == pytest.approx([1e-3, 1e-3, 2e-3, 4e-3, 8e-3])
