"""Names with terminal control characters: every tool prints them escaped, and MLIR text escapes them."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import sdy
from samples import covering
from sdy.diagnostics import Location, error, register_source
from sdy.formatting import escape_line, escape_lines
from sdy.tools import sdy_blocks, sdy_diff, sdy_interpret, sdy_lint, sdy_opt, sdy_run

TITLE = "\x1b]0;owned\x07"
NAMES = {
    "an escape sequence": TITLE,
    "a C1 control character": "\x9b31m",
    "a backspace": "a\x08b",
    "a line": "a\nb",
    "text turned around": "\u202eabc",
    "markup": "[/bold]",
    "an emoji's name": ":smile:",
    "HTML": "<b>",
    "a quote and a backslash": '"\\',
}


def literal(name: str) -> str:
    """Return a string literal of MLIR with all bytes escaped."""
    return '"' + "".join(f"\\{byte:02X}" for byte in name.encode()) + '"'


def program(name: str) -> str:
    """Return a program with the name in every place: mesh, axis, functions, attributes, locations."""
    text, function = literal(name), literal(name + "f")
    return f"""\
sdy.mesh @{text} = <[{text}=2]>
func.func private @{function}(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.tanh %arg0 {{{text} = {text}}} : tensor<4xf32> loc({text})
  return %0 : tensor<4xf32>
}}
func.func @main(%arg0: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@{text}, [{{{text}}}]>}} loc({text}:3:4))
    -> tensor<4xf32> {{
  %0 = func.call @{function}(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc({text}:1:2)
  return %0 : tensor<4xf32>
}}
"""


def assert_harmless(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" for c in text), text


named = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@named
def test_each_character_that_is_not_printed_is_escaped(name: str):
    assert escape_line(name).isprintable()
    assert_harmless(escape_lines(name))


def test_escapes_are_those_of_python():
    assert escape_line("\x1b \x9b \u202e \n") == r"\x1b \x9b \u202e \n"


def test_printable_characters_are_not_escaped():
    assert escape_line("@mesh_é → 日本 \t\\x1b") == "@mesh_é → 日本 \t\\x1b"
    assert escape_lines("a\nb\x1b") == "a\nb\\x1b"


@named
def test_a_diagnostic_is_harmless_and_its_caret_stands_right(name: str):
    name = name.replace("\n", "")
    register_source(name, f"  {name}(here)")
    place, line, caret = str(error(Location(name, 1, 3 + len(name)), f"{name} is wrong")).split("\n")
    assert_harmless(place + line)
    assert place == f"{escape_line(name)}:1:{3 + len(name)}: error: {escape_line(name)} is wrong"
    assert line[caret.index("^") :] == "(here)"


@named
@pytest.mark.parametrize("options", [[], ["--mlir-print-op-generic"], ["--mlir-print-debuginfo"]])
def test_sdy_opt_prints_valid_mlir(name: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "program.mlir"
    path.write_text(program(name))
    assert sdy_opt.main([str(path), *options]) == 0
    printed = capsys.readouterr().out
    assert_harmless(printed)
    path.write_text(printed)
    assert sdy_opt.main([str(path), *options]) == 0
    assert capsys.readouterr().out == printed
    module, again = sdy.parse(program(name)), sdy.parse(printed)
    assert module.is_structurally_equivalent(again)


def on_four_devices(path: str) -> str:
    """Return the path of the same program for a larger mesh."""
    larger = Path(path).with_name("larger.mlir")
    larger.write_text(Path(path).read_text().replace("=2]>", "=4]>"))
    return str(larger)


TOOLS: dict[str, Callable[[str], int]] = {
    "sdy-run": lambda path: sdy_run.main([path]),
    "sdy-opt": lambda path: sdy_opt.main([path, "-sdy-propagation-pipeline", "--sdy-explain=%0"]),
    "sdy-opt that fails": lambda path: sdy_opt.main([path, "--sdy-explain=%0"]),
    "sdy-opt with dumps": lambda path: sdy_opt.main([path, "-sdy-inline-meshes", "--mlir-print-ir-after-all"]),
    "sdy-interpret": lambda path: sdy_interpret.main([path]),
    "sdy-diff": lambda path: sdy_diff.main([path, on_four_devices(path)]),
    "sdy-lint": lambda path: sdy_lint.main([path, "--large", "1"]),
    "sdy-blocks": lambda path: sdy_blocks.main([path, "--check"]),
    "sdy-blocks that draws": lambda path: sdy_blocks.main([path, "--dot", "-"]),
}


@named
def test_the_text_of_an_unknown_attribute_is_harmless(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Only its strings can contain such characters, which are escaped in the text too."""
    raw = '"' + re.sub(r'[\n"\\]', "", name) + '"'
    path = tmp_path / "program.mlir"
    path.write_text(f"module attributes {{unknown.a = #unknown<{raw}>, unknown.b = !unknown.c<{raw}>}} {{\n}}\n")
    for _ in range(2):
        assert sdy_opt.main([str(path), "--allow-unregistered-dialect"]) == 0
        printed = capsys.readouterr().out
        assert_harmless(printed)
        path.write_text(printed)


@covering
@named
@pytest.mark.parametrize("tool", TOOLS)
def test_tools_print_no_control_characters(tool: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "program.mlir"
    path.write_text(program(name))
    TOOLS[tool](str(path))
    captured = capsys.readouterr()
    assert_harmless(captured.out + captured.err)
    assert captured.out + captured.err
    assert "Traceback" not in captured.err


@named
def test_an_account_has_names_as_they_are(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "program.mlir"
    path.write_text(program(name))
    assert sdy_run.main([str(path)]) == 0
    assert f"@{escape_line(name)} {escape_line(name)}=2" in " ".join(capsys.readouterr().out.split())
