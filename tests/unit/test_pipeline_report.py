"""The report of a program on several meshes: its timeline, and the costs of its meshes and fragments."""

import json
from pathlib import Path
from typing import Any

import pytest

import sdy
from sdy.diagnostics import DiagnosticError
from sdy.tools import sdy_report

T = "tensor<1024x1024xf32>"
TEXT = f"""
!a = !mpmd.mesh_tensor<"first", {T}, sharding=<@mesh, [{{"data"}}, {{}}]>>
!b = !mpmd.mesh_tensor<"second", {T}, sharding=<@mesh, [{{"data"}}, {{}}]>>
sdy.mesh @mesh = <["data"=2]>
func.func private @square(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}}) -> {T}
    attributes {{mesh_shape = #sdy.mesh<["data"=2]>}} {{
  %0 = stablehlo.dot %x, %x : ({T}, {T}) -> {T}
  return %0 : {T}
}}
func.func public @main(%x: !a) -> !b
    attributes {{topology = #mpmd.topology<<"first" : <["data"=2]>>, <"second" : <["data"=2]>>>}} {{
  %0 = mpmd.fragment_call<mesh="first", origin=["stage0"]> @square(%x) : (!a) -> !a
  %1 = mpmd.fragment_call<mesh="first", origin=["stage0"]> @square(%0) : (!a) -> !a
  %2 = mpmd.transfer %1 : (!a) -> !b
  %3 = mpmd.fragment_call<mesh="second", origin=["stage1"]> @square(%2) : (!b) -> !b
  return %3 : !b
}}
"""


def test_the_page_has_the_timeline_and_the_costs_of_meshes_and_fragments() -> None:
    report, plan = sdy.report(sdy.parse(TEXT), hardware="h100"), sdy.mpmd.plan(sdy.parse(TEXT), "h100")
    assert [name for name, *_ in report.data["meshes"]] == ["first", "second"]
    assert [sent for *_, sent in report.data["meshes"]] == ["2 MiB", "0 bytes"]
    assert [row[:3] for row in report.data["fragments"]] == [("@square", "first", "2"), ("@square", "second", "1")]
    assert report.headline[0].startswith("A step on 2 meshes is predicted to take ")
    assert plan.to_svg() in report.html
    assert report.html.count("<tr>") == 2 + 2 + 2
    assert "<script" not in report.html


def test_the_tool_writes_the_page_and_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pipeline.mlir").write_text(TEXT)
    command = ["pipeline.mlir", "--hardware", "h100-hosts", "--perfetto", "trace.json"]
    assert sdy_report.main(command) == 0
    assert sdy_report.main(command) == 0, "a report may be replaced"
    assert "<h1>pipeline.mlir</h1>" in Path("pipeline.html").read_text()
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    threads = [each["args"]["name"] for each in events if each["name"] == "thread_name"]
    assert threads == ["first", "second", "first to second"]


def test_names_are_escaped() -> None:
    page = sdy.report(sdy.parse(TEXT.replace('"first"', '"<b>"')), hardware="h100").html
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize("options", [{"compiled": True}, {"under": "jax.jit"}])
def test_several_meshes_are_not_compiled_as_one(options: dict[str, Any]) -> None:
    with pytest.raises(DiagnosticError, match=r"is on several meshes \(MPMD\), not one"):
        sdy.report(sdy.parse(TEXT), **options)
