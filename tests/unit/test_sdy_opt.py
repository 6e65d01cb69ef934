"""The command sdy-opt."""

import subprocess
import sys
from pathlib import Path

import pytest

import forked_commands

MODULE = """\
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


def sdy_opt(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return forked_commands.run(["-m", "sdy", "opt", *words], stdin=stdin)


def test_standard_input_to_standard_output() -> None:
    for words in ([], ["-"]):
        result = sdy_opt(*words, stdin=MODULE)
        assert (result.returncode, result.stdout, result.stderr) == (0, MODULE, "")


@pytest.mark.parametrize("flag", ["-sdy-basic-propagate", "--sdy-basic-propagate", "--sdy-basic-propagate="])
def test_passes_are_flags(flag: str) -> None:
    result = sdy_opt(flag, stdin=MODULE)
    assert result.returncode == 0
    assert 'stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>}' in result.stdout


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    source, target = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text(MODULE)
    assert sdy_opt(source, "-o", target).returncode == 0
    assert target.read_text() == MODULE
    source.write_text(MODULE[:-20])
    assert sdy_opt(source, "-o", target).returncode == 2
    assert target.read_text() == MODULE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]


def test_help_lists_each_pass_with_its_summary() -> None:
    result = sdy_opt("--help")
    assert result.returncode == 0
    lines = [line for line in result.stdout.splitlines() if line.startswith("  --sdy-")]
    assert len(lines) > 30
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--sdy-basic-propagat", "unknown flag '--sdy-basic-propagat': did you mean '--sdy-basic-propagate'?"),
        ("-split-input-fil", "unknown flag '-split-input-fil': did you mean '--split-input-file'?"),
        ("--sdy-basic-propagate=keep-sharding-rule", "unknown option of pass 'sdy-basic-propagate'"),
        ("--verify-each=perhaps", "'--verify-each' must be true or false, not 'perhaps'"),
        ("-o", "'-o' requires a value"),
    ],
)
def test_wrong_flags_are_named(word: str, message: str) -> None:
    result = sdy_opt(word, stdin=MODULE)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "in.mlir:1:1: error: "),
        (b"\n  \n", "error: "),
        (MODULE[:100].encode(), "in.mlir:3:"),
        (b"not MLIR at all", "in.mlir:1:1: error: "),
        (b"module {\n  \xff\n}", "in.mlir:2:3: error: not MLIR text: byte 0xff is not valid UTF-8"),
        (b"ML\xefR\x01", "in.mlir:1:1: error: this looks like MLIR bytecode but"),
        (MODULE.replace("%arg0, %arg0", "%arg0, %arg1").encode(), "in.mlir:4:"),
        (MODULE.replace('{"x"}', '{"y"}').encode(), "error: "),
        (MODULE.replace('[{"x"}]', '[{"x"}, {}]').encode(), "error: "),
        (MODULE.replace("stablehlo.add", "stablehlo.ad").encode(), "in.mlir:4:"),
    ],
)
def test_bad_input_is_refused_where_it_stands(tmp_path: Path, content: bytes, message: str) -> None:
    source = tmp_path / "in.mlir"
    source.write_bytes(content)
    result = sdy_opt(source)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.mlir", "no such file or directory"), (tmp_path, "is a directory")):
        result = sdy_opt(path)
        assert result.returncode == 2
        assert f"{path}:1:1: error: cannot read the file: {reason}" in result.stderr


def test_split_input_and_expected_diagnostics(tmp_path: Path) -> None:
    source = tmp_path / "in.mlir"
    bad = '// expected-error @+1 {{duplicate axis name: "x"}}\nsdy.mesh @mesh = <["x"=2, "x"=2]>\n'
    source.write_text(f"{MODULE}// -----\n{bad}")
    result = sdy_opt(source, "-split-input-file", "-verify-diagnostics")
    assert result.returncode == 0, result.stderr
    source.write_text(f"{MODULE}// -----\n{bad.replace('duplicate', 'double')}")
    result = sdy_opt(source, "-split-input-file", "-verify-diagnostics")
    assert result.returncode == 1
    assert "error: unexpected error: " in result.stderr
    assert 'duplicate axis name: "x"' in result.stderr
    assert 'expected error "double axis name: "x"" was not produced' in result.stderr


def test_the_module_after_each_pass_and_the_time_of_each() -> None:
    pipeline = "builtin.module(symbol-dce,func.func(sdy-close-shardings))"
    result = sdy_opt(f"--pass-pipeline={pipeline}", "--mlir-print-ir-after-all", "--mlir-timing", stdin=MODULE)
    assert result.returncode == 0
    assert "IR Dump After SymbolDcePass (symbol-dce)" in result.stderr
    assert "IR Dump After CloseShardingsPass (sdy-close-shardings)" in result.stderr
    assert "total" in result.stderr


def test_propagation_within_partitioning_is_shown_pass_by_pass() -> None:
    module = """
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
          %0 = stablehlo.composite "my.f" %arg0 {decomposition = @f} : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          return %arg0 : tensor<8xf32>
        }
    """
    result = sdy_opt("-sdy-partition-pipeline", "--mlir-print-ir-after-all", stdin=module)
    assert result.returncode == 0
    assert "(sdy-user-priority-propagate)" in result.stderr
    whole = module.replace(' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}', "")
    result = sdy_opt("-sdy-partition-pipeline", "--mlir-print-ir-after-all", stdin=whole)
    assert "(sdy-expand-split-operations)" in result.stderr
    assert "(sdy-user-priority-propagate)" not in result.stderr


def test_generic_form_and_unregistered_dialects() -> None:
    assert '"func.func"() <{' in sdy_opt("--mlir-print-op-generic", stdin=MODULE).stdout
    foreign = '"test.op"() : () -> ()\n'
    assert sdy_opt(stdin=foreign).returncode == 2
    assert '"test.op"() : () -> ()' in sdy_opt("-allow-unregistered-dialect", stdin=foreign).stdout


def test_locations_are_printed_when_asked_for() -> None:
    located = MODULE.replace("%arg0 : tensor<8xf32>\n", '%arg0 : tensor<8xf32> loc("model.py":12:4)\n')
    assert "model.py" not in sdy_opt(stdin=located).stdout
    assert '= loc("model.py":12:4)' in sdy_opt("--mlir-print-debuginfo", stdin=located).stdout


def test_the_module_before_each_pass_in_the_form_that_is_asked_for() -> None:
    result = sdy_opt("--symbol-dce", "--mlir-print-ir-before-all", "--mlir-print-op-generic", stdin=MODULE)
    assert "IR Dump Before SymbolDcePass (symbol-dce)" in result.stderr
    assert '"func.func"() <{' in result.stderr


def test_short_names_and_large_constants_are_left_out_when_asked_for() -> None:
    text = "module attributes {a.a = affine_map<() -> ()>, a.b = dense<[1, 2, 3]> : tensor<3xi8>} {}"
    assert "a.a = #map, a.b = dense<[1" in sdy_opt(stdin=text).stdout
    flags = ("--mlir-print-local-scope", "--mlir-elide-elementsattrs-if-larger=2")
    assert "a.a = affine_map<() -> ()>, a.b = dense_resource<__elided__>" in sdy_opt(*flags, stdin=text).stdout
    refused = sdy_opt("--mlir-elide-elementsattrs-if-larger=few", stdin=text)
    assert refused.returncode == 2
    assert "must be a number of elements, not 'few'" in refused.stderr


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    source = tmp_path / "in.mlir"
    source.write_text(MODULE)
    command = f"{sys.executable} -m sdy.tools.sdy_opt {source} | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert result.stderr == ""
