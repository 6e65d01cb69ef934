"""A line that is recognised says what it says when it is read token by token."""

from pathlib import Path

import pytest

from sdy.diagnostics import DiagnosticError
from sdy.passes.driver import Source
from sdy.text import format, parse
from sdy.text.reading.repeated_lines import RepeatedLineParser
from sdy.tools.split_input import split

ROOT = Path(__file__).parents[1]
PATHS = [ROOT / "examples" / "transformer.mlir", *sorted((ROOT / "lit_tests").rglob("*.mlir"))]

SUBTRACTION = "stablehlo.subtract %0, %arg0 : tensor<4xf32>"
REDUCTION = "applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
HEAD = f"""
func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<8xf32>, %c: tensor<f32>, %p: tensor<4xi1>) {{
  %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
  %1 = stablehlo.select %p, %arg0, %arg0 : tensor<4xi1>, tensor<4xf32>
  %2 = stablehlo.reduce(%arg0 init: %c) {REDUCTION}
"""
LINES = {
    "other values": f"%3 = {SUBTRACTION}",
    "one value twice": "%3 = stablehlo.subtract %0, %0 : tensor<4xf32>",
    "after one value twice": "%3 = stablehlo.select %p, %arg0, %arg1 : tensor<4xi1>, tensor<4xf32>",
    "another indentation": f"    %3 = {SUBTRACTION}",
    "a body": f"%3 = stablehlo.reduce(%0 init: %2) {REDUCTION}",
    "another type": "%3 = stablehlo.subtract %arg2, %arg2 : tensor<8xf32>",
    "a wrong type": "%3 = stablehlo.subtract %arg0, %arg2 : tensor<4xf32>",
    "no value": "%3 = stablehlo.subtract %0, %nothing : tensor<4xf32>",
    "no result": f"{SUBTRACTION}",
    "a second definition": "%0 = stablehlo.subtract %arg1, %arg0 : tensor<4xf32>",
    "too many results": f"%3:2 = {SUBTRACTION}",
    "a location": f'%3 = {SUBTRACTION} loc("here")',
    "a location below": f'%3 = {SUBTRACTION}\n  loc("here")',
    "a comment": f"%3 = {SUBTRACTION}  // not %p",
    "a comment below": f"%3 = {SUBTRACTION}\n  // not %p",
    "two on a line": f"%3 = {SUBTRACTION} %4 = {SUBTRACTION}",
    "what cannot follow": f"%3 = {SUBTRACTION}\n  , tensor<4xf32>",
    "a name in a string": '%3 = stablehlo.subtract %0, %arg0 {a = "%1"} : tensor<4xf32>',
}


def outcome(source: Source) -> str:
    """All that reading a text gives: the module with the place of everything, or what is said against it."""
    try:
        return format(parse(source.text, source.name), debuginfo=True)
    except DiagnosticError as problem:
        return str(problem)


def no_line(parser: RepeatedLineParser) -> None:
    """What stands in for `line_here` where every line is to be read as if it were the first."""


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_repeated_line(line: str, monkeypatch: pytest.MonkeyPatch):
    source = Source(f"{HEAD}  {line}\n  {line.replace('%3', '%7')}\n  return\n}}\n", "some.mlir")
    recognised = outcome(source)
    monkeypatch.setattr(RepeatedLineParser, "line_here", no_line)
    assert outcome(source) == recognised


def test_lines_are_recognised(monkeypatch: pytest.MonkeyPatch):
    again = [0]
    read_again = RepeatedLineParser.read_again

    def counting(self: RepeatedLineParser, line: object):
        op = read_again(self, line)  # pyright: ignore[reportArgumentType]
        again[0] += op is not None
        return op

    monkeypatch.setattr(RepeatedLineParser, "read_again", counting)
    parse(PATHS[0].read_text())
    assert again[0] > 250


def test_what_the_tests_of_passes_read(monkeypatch: pytest.MonkeyPatch):
    sources = [part for path in PATHS for part in split(Source(path.read_text(), path.name))]
    recognised = [outcome(source) for source in sources]
    monkeypatch.setattr(RepeatedLineParser, "line_here", no_line)
    assert [outcome(source) for source in sources] == recognised
