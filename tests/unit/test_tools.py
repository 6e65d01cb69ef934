"""Features of all commands: `--version`, `python -m sdy`, and common options."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import forked_commands
import sdy
from samples import covering
from sdy.__main__ import TOOLS

CHECKOUT = Path(__file__).parents[2]


def python_m_sdy(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return forked_commands.run(["-m", "sdy", *words], stdin=stdin)


def test_python_m_sdy_knows_each_command_that_is_installed() -> None:
    scripts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {f"sdy-{name}": f"sdy.tools.entry:sdy_{name}" for name in TOOLS}


@pytest.mark.parametrize("name", TOOLS)
def test_each_tool_tells_its_version_and_of_what_it_is_made(name: str) -> None:
    done = python_m_sdy(name, "--version")
    made_of = ", ".join(f"{package} {version(package)}" for package in ("jax", "jaxlib", "xdsl"))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"sdy-{name} {version('sdy')} ({made_of})\n", "")


def test_versions_are_told_without_jax() -> None:
    run = "import sys; from sdy.__main__ import main; main(['--version']); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    line, has_jax = done.stdout.splitlines()
    assert line.startswith(f"sdy {version('sdy')} (jax ")
    assert has_jax == "False"


def test_a_command_is_tuned_before_xdsl_is_imported() -> None:
    """The cache of dataclass methods and the collector's threshold save a tenth of a short command's time."""
    run = "import sys, sdy.tools.entry; print([name for name in ('xdsl', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_entry_points_are_read_only_if_needed() -> None:
    run = """
import sys
from sdy.tools.sdy_opt import main
main(["-sdy-propagation-pipeline"])
print([name for name in ("importlib.metadata", "jax", "scipy") if name in sys.modules])
"""
    text = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
    done = subprocess.run([sys.executable, "-c", run], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_python_m_sdy_alone_says_what_there_is(words: tuple[str, ...]) -> None:
    done = python_m_sdy(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"  {name} " in done.stdout for name in TOOLS)


def test_python_m_sdy_runs_a_tool() -> None:
    done = python_m_sdy("opt", "-symbol-dce", stdin="module {\n}\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "module {\n}\n", "")


def test_a_tool_that_there_is_not() -> None:
    done = python_m_sdy("sdy-optt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sdy: there is no tool 'sdy-optt': did you mean 'opt'?\n")


AS_TEXT = "expected StableHLO as MLIR text, for example from jax.jit(f).lower(...).as_text()"


@covering
@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"HloModule jit_f\n", "1:1: error: this is HLO text, not MLIR"),
        (b"\n  HloModule jit_f\n", "2:3: error: this is HLO text, not MLIR"),
        (b" \n", "1:1: error: the file is empty"),
        (b"module {\n  \xff", "2:3: error: not MLIR text: byte 0xff is not valid UTF-8"),
    ],
    ids=["HLO", "HLO further down", "empty", "no text"],
)
def test_errors_name_the_format_of_a_file_that_is_not_mlir(
    name: str, content: bytes, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    paths = [str(path)] * (2 if name == "diff" else 1)
    assert import_module(f"sdy.tools.sdy_{name}").main(paths) == 2
    assert capsys.readouterr().err.startswith(f"{path}:{problem}; {AS_TEXT}\n")


def test_hlo_given_to_the_parser_is_called_by_its_name() -> None:
    with pytest.raises(sdy.DiagnosticError, match="this is HLO"):
        sdy.parse("HloModule jit_f\n")


OPTIONS = {
    "auto": "--arguments-only --devices --emit-python --front --hardware --measure --memory --mesh --output "
    "--time-limit -o",
    "blocks": "--block-bytes --check --dot --input --inputs --json --memory-limit --output --scheduler --seed "
    "--split-reductions",
    "diff": "--all --golden",
    "interpret": "--inputs --split-input-file",
    "lint": "--baseline --config --explain --format --ignore --large --list --many --replicated --select --small "
    "--under --write-baseline",
    "report": "--compile --force --hardware --no-findings --output --perfetto --under -o",
    "run": "--check --compare-layouts --devices --inputs --memory --no-check --no-compare-layouts --seed --under",
}
"""The options of each tool besides the common ones; an option has one name in all tools."""

IN_ALL = {"--custom-call-rules", "--help", "--import", "--version"}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_options_of_a_tool(name: str) -> None:
    done = python_m_sdy(name, "--help")
    options = set(
        re.findall(r"(?<![\w-])--?[a-z][a-z-]*", done.stdout.partition("options:")[2].partition("examples:")[0])
    )
    assert options - {"-h"} == IN_ALL | set(OPTIONS[name].split())


def test_sdy_opt_has_the_options_that_all_tools_have() -> None:
    assert all(f"  {option}" in python_m_sdy("opt", "--help").stdout for option in [*IN_ALL, "-o FILE, --output"])


VALID = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"


@covering
@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("words", [("--no-such-flag",), ("/no/such/file.mlir",)])
def test_the_exit_status_is_2_without_an_answer(name: str, words: tuple[str, ...]) -> None:
    also = ("/no/such/file.mlir",) if name == "diff" else ()
    done = python_m_sdy(name, *words, *also)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "files", "status"),
    [
        (("opt", "a.mlir"), {"a.mlir": VALID}, 0),
        (("opt", "a.mlir"), {"a.mlir": VALID.replace("return", "retrun")}, 2),
        (("interpret", "a.mlir"), {"a.mlir": VALID}, 2),
        (("interpret", "a.mlir", "--inputs", "none.npz"), {"a.mlir": VALID}, 2),
        (("opt", "--verify-diagnostics", "a.mlir"), {"a.mlir": VALID.replace("return", "retrun")}, 1),
        (("interpret", "a.mlir"), {"a.mlir": "func.func @main() { return }"}, 0),
        (("interpret", "a.mlir"), {"a.mlir": "func.func @main() { retrun }"}, 2),
        (("diff", "a.mlir", "b.mlir"), {"a.mlir": VALID, "b.mlir": VALID}, 0),
        (("diff", "a.mlir", "b.mlir"), {"a.mlir": VALID, "b.mlir": VALID.replace("8", "16")}, 1),
        (("diff", "a.mlir", "b.mlir"), {"a.mlir": VALID, "b.mlir": VALID.replace("return", "retrun")}, 2),
        (("lint", "a.mlir"), {"a.mlir": VALID}, 0),
        (("lint", "a.mlir"), {"a.mlir": VALID.replace("return", "retrun")}, 2),
        (("report", "a.mlir", "-o", "a.html"), {"a.mlir": VALID.replace("return", "retrun")}, 2),
        (("run", "a.mlir"), {"a.mlir": VALID.replace("return", "retrun")}, 2),
        (("auto", "a.mlir", "--mesh", "x=2"), {"a.mlir": VALID.replace("return", "retrun")}, 2),
        (("blocks", "a.mlir"), {"a.mlir": VALID.replace("return", "retrun")}, 2),
    ],
)
def test_the_exit_status_says_whether_the_answer_is_no(
    words: tuple[str, ...], files: dict[str, str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert import_module(f"sdy.tools.sdy_{words[0]}").main(words[1:]) == status


@pytest.mark.parametrize(
    "words",
    [
        ("opt", "-o"),
        ("report", "-o"),
        ("report", "--hardware=h100-8", "--perfetto"),
        ("auto", "-o"),
        ("auto", "--emit-python"),
        ("auto", "--front"),
        ("auto", "--measure", "-o"),
        ("lint", "--write-baseline"),
        ("diff", "--golden"),
        ("blocks", "--dot"),
        ("blocks", "--json"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("output", ["no/such/folder/file", "."])
def test_a_file_that_cannot_be_written_is_found_before_the_work(
    words: tuple[str, ...],
    output: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *options = words
    program = [] if "--measure" in options else ["/no/such/file.mlir"]
    assert import_module(f"sdy.tools.sdy_{name}").main([*program, *options, output]) == 2
    assert "cannot write the file" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
