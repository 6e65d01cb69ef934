"""What all commands have in common: `--version`, and `python -m sdy`, which knows them all."""

import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import sdy
from sdy.__main__ import TOOLS

CHECKOUT = Path(__file__).parents[2]


def python_m_sdy(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sdy", *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)


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


def test_what_packages_name_is_not_read_for_a_program_that_needs_none_of_it() -> None:
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
def test_what_is_no_mlir_text_is_called_by_its_name(
    name: str, content: bytes, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    paths = [str(path)] * (2 if name == "diff" else 1)
    assert import_module(f"sdy.tools.sdy_{name}").main(paths) == (2 if name in ("diff", "lint") else 1)
    assert capsys.readouterr().err.startswith(f"{path}:{problem}; {AS_TEXT}\n")


def test_hlo_given_to_the_parser_is_called_by_its_name() -> None:
    with pytest.raises(sdy.DiagnosticError, match="this is HLO"):
        sdy.parse("HloModule jit_f\n")
