"""Memoized parsing and printing of repeated text give the same results."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from xdsl.ir import Operation, SSAValue

from samples import sample
from sdy.diagnostics import DiagnosticError
from sdy.ir.operation_key import OperationKey
from sdy.passes.driver import Source, split
from sdy.text import format, parse
from sdy.text.printing.text_cache import TextCache
from sdy.text.reading.line_cache import Line, LineCacheParser

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / "examples" / "transformer.mlir", *sorted((ROOT / "lit_tests").rglob("*.mlir"))]

SUBTRACTION = "stablehlo.subtract %0, %arg0 : tensor<4xf32>"
REDUCTION = "applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
BARRIER = "stablehlo.optimization_barrier"
HEAD = f"""
func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<8xf32>, %c: tensor<f32>, %p: tensor<4xi1>) {{
  %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
  %1 = stablehlo.select %p, %arg0, %arg0 : tensor<4xi1>, tensor<4xf32>
  %2 = stablehlo.reduce(%arg0 init: %c) {REDUCTION}
  %t:2 = {BARRIER} %arg0, %0 : tensor<4xf32>, tensor<4xf32>
  %u = stablehlo.clamp %0, %0, %arg0 : tensor<4xf32>
"""
LINES = {
    "other values": f"%3 = {SUBTRACTION}",
    "one value twice": "%3 = stablehlo.subtract %0, %0 : tensor<4xf32>",
    "after one value twice": "%3 = stablehlo.select %p, %arg0, %arg1 : tensor<4xi1>, tensor<4xf32>",
    "other values twice": "%3 = stablehlo.clamp %arg0, %arg0, %arg1 : tensor<4xf32>",
    "another value twice": "%3 = stablehlo.clamp %0, %arg0, %arg0 : tensor<4xf32>",
    "one of two results": "%3 = stablehlo.subtract %t#1, %arg0 : tensor<4xf32>",
    "the first of two results": "%3 = stablehlo.subtract %t, %t#0 : tensor<4xf32>",
    "no such result": "%3 = stablehlo.subtract %t#2, %arg0 : tensor<4xf32>",
    "two results": f"%3:2 = {BARRIER} %0, %arg0 : tensor<4xf32>, tensor<4xf32>",
    "two results of one value": f"%3:2 = {BARRIER} %0, %0 : tensor<4xf32>, tensor<4xf32>",
    "too few results": f"%3 = {BARRIER} %0, %arg0 : tensor<4xf32>, tensor<4xf32>",
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
    """Return the module with all locations, or the error, that parsing a text gives."""
    try:
        module = parse(source.text, source.name)
        return format(module, debuginfo=True) + format(module, generic=True)
    except DiagnosticError as problem:
        return str(problem)


def recognise_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the caches, so that every line and every operation is handled as if new."""

    def no_line(parser: LineCacheParser, offset: int) -> None:
        pass

    def no_text(texts: TextCache, *asked: object) -> None:
        pass

    monkeypatch.setattr(LineCacheParser, "line_at", no_line)
    monkeypatch.setattr(TextCache, "find", no_text)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_repeated_line(line: str, monkeypatch: pytest.MonkeyPatch):
    source = Source(f"{HEAD}  {line}\n  {line.replace('%3', '%7')}\n  return\n}}\n", "some.mlir")
    recognised = outcome(source)
    recognise_nothing(monkeypatch)
    assert outcome(source) == recognised


def test_most_of_a_model_is_recognised(monkeypatch: pytest.MonkeyPatch):
    read: list[bool] = []
    printed: list[bool] = []
    cached_operation, find = LineCacheParser.cached_operation, TextCache.find

    def reading(parser: LineCacheParser, line: Line) -> Operation | None:
        op = cached_operation(parser, line)
        read.append(op is not None)
        return op

    def finding(texts: TextCache, key: OperationKey, op: Operation, names: Mapping[SSAValue, str]) -> str | None:
        text = find(texts, key, op, names)
        printed.append(text is not None)
        return text

    monkeypatch.setattr(LineCacheParser, "cached_operation", reading)
    monkeypatch.setattr(TextCache, "find", finding)
    text = PATHS[0].read_text()
    assert format(parse(text)) == text
    assert sum(read) > 400
    assert sum(printed) > 400


def test_what_the_tests_of_passes_read(monkeypatch: pytest.MonkeyPatch):
    sources = [part for path in sample(PATHS) for part in split(Source(path.read_text(), path.name))]
    recognised = [outcome(source) for source in sources]
    recognise_nothing(monkeypatch)
    assert [outcome(source) for source in sources] == recognised
