"""`sdy.report` and `sdy-report`: the page agrees with the passes."""

import json
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import sdy
from corpus import PROGRAMS
from samples import sample
from sdy.diagnostics import Location, capture
from sdy.dialect.meshes import named_meshes
from sdy.ir.walking import operations
from sdy.passes.account.partitioned_program import partitioned_program, propagated_program
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import Json, Numbers
from sdy.passes.account.report.reasons import Reasons
from sdy.passes.account.report.sources import source_lines
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.repeats import Repeat, repeats
from sdy.passes.propagation.provenance.explain import Explainer
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import StepTimes
from sdy.tools import sdy_report

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer.mlir"
LAYER = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<64x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %1 = stablehlo.tanh %0 : tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}
"""
HARDWARE = "h100-8"


def collectives(found: Json) -> list[Json]:
    return [each for group in found["collectives"] for each in group]


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=90))
def test_numbers_are_those_of_the_passes(name: str) -> None:
    with capture():
        module = PROGRAMS[name].module()
        found = sdy.report(module, hardware=HARDWARE).data
        local = partitioned_program(module).local
    assert sum(each["bytes"] for each in collectives(found)) == pytest.approx(bytes_received(local))
    memory = found["memory"]
    assert memory["outside"] + max(memory["bytes"], default=0) == peak_bytes(local, hardware_of(HARDWARE).backend)
    assert sum(each[-1] for each in memory["held"]) + memory["others"] == max(memory["bytes"], default=0)
    mesh = next(iter(named_meshes(local).values()))
    cost = StepTimes(local, mesh, hardware_of(HARDWARE)).cost()
    assert sum(each["seconds"] for each in collectives(found)) == pytest.approx(sum(cost.communication.values()))
    assert sum(found["seconds"]) == pytest.approx(cost.compute)
    assert all(each["row"] >= 0 for each in collectives(found)), "each collective is for an operation of the program"
    assert json.loads(json.dumps(found, allow_nan=False))


def test_reasons_are_those_of_explain() -> None:
    (*_, layout) = propagated_program(sdy.parse(EXAMPLE.read_text(), str(EXAMPLE)))
    module = layout.module
    explainer, numbers = Explainer(module, main_function(module)), Numbers(module)
    listing = Listing(module, explainer.names, numbers)
    told = Reasons(explainer, listing, numbers).as_json([])
    strings = numbers.as_json()["strings"]
    for value, flat in zip(listing.values, told["reasons"], strict=True):
        chains = explainer.explain(value).chains
        assert [chain.dimension for chain in chains] == flat[::2]
        for chain, step in zip(chains, flat[1::2], strict=True):
            ways = [*(hop.through for hop in chain.hops), chain.origin.text]
            names = [*(hop.target for hop in chain.hops), *(hop.source for hop in chain.hops[-1:])]
            for way, name in zip(ways, names or [explainer.names.of_value(value)], strict=True):
                assert strings[told["steps"]["why"][step]] == way
                assert strings[told["steps"]["name"][step]] == name
                step = told["steps"]["previous"][step]
            assert step == -1


def test_report_includes_the_costs_of_the_compiled_program() -> None:
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    step = sdy.jit(lambda x: (x @ x.T).sum(), mesh=mesh, in_shardings=P("x"))
    found = sdy.report(step, jnp.ones((16, 8)), compiled=True).data
    account = sdy.account(step, jnp.ones((16, 8)))
    assert account.compiled is not None
    assert found["compiled"] == {"received": account.compiled.bytes_received, "memory": account.compiled.memory}


def test_report_notes_whether_it_propagated_the_program() -> None:
    text = LAYER
    assert "propagated for this page" in sdy.report(sdy.parse(text)).data["notes"][0]
    module = sdy.parse(text)
    sdy.propagate(module)
    before = sdy.format(module)
    assert sdy.report(module).data["notes"] == []
    assert sdy.format(module) == before
    found = sdy.report(sdy.parse(before)).data
    assert "the reasons for its shardings are unknown" in found["notes"][0]
    assert found["reasons"] == []


def test_a_report_leaves_what_it_is_given() -> None:
    module = sdy.parse(LAYER)
    before = sdy.format(module, debuginfo=True)
    sdy.report(module)
    assert sdy.format(module, debuginfo=True) == before


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.integers(10, 30), min_size=4, max_size=8, unique=True),
    st.integers(2, 9),
)
def test_layers_are_found(before: list[int], layer: list[int], times: int) -> None:
    sequence = [*before, *layer * times, 100, 101]
    found = repeats(sequence)
    assert sum(repeat.spared for repeat in found) >= (times - 1) * len(layer)
    for start, period, count in found:
        one = sequence[start : start + period]
        assert sequence[start : start + period * count] == one * count
    ends = [0, *(repeat.end for repeat in found)]
    assert all(repeat.start >= end for repeat, end in zip(found, ends, strict=False))


def test_nothing_repeats_in_little() -> None:
    assert repeats([]) == repeats([1]) == repeats([1, 2, 3, 4, 5]) == []
    assert repeats([7, 1, 2, 3, 4, 1, 2, 3, 4, 8]) == [Repeat(1, 4, 2)]


def test_only_source_files_are_read(tmp_path: Path) -> None:
    for name in ("model.py", "secret", "key.pem"):
        (tmp_path / name).write_text("one\ntwo\nthree\n")
    places = [Location(str(tmp_path / name), 2, 1) for name in ("model.py", "secret", "key.pem", "gone.py")]
    assert {Path(name).name: lines[2] for name, lines in source_lines(places).items()} == {"model.py": "two"}


def check_timeline_of_transformer(events: list[Json]) -> None:
    threads = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert set(threads.values()) == {"computation", "link of 8 devices"}
    slices = [each for each in events if each["ph"] == "X"]
    for thread in threads:
        row = [each for each in slices if each["tid"] == thread]
        assert all(one["ts"] + one["dur"] <= other["ts"] + 1e-6 for one, other in pairwise(row))
    on_link = [each["name"] for each in slices if threads[each["tid"]] == "link of 8 devices"]
    assert on_link == ["all_reduce"] * 33
    assert all(":" in each["args"]["source"] for each in slices)


def test_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert sdy_report.main([str(EXAMPLE), "--hardware", HARDWARE, "--perfetto", "trace.json"]) == 0
    page = tmp_path / "transformer.html"
    assert page.read_text().startswith("<!doctype html>")
    told = capsys.readouterr().out
    assert told.startswith("wrote transformer.html\nEach device receives 724 KiB per step, in 33 all-reduces.\n")
    assert "A step is predicted to take" in told
    check_timeline_of_transformer(json.loads((tmp_path / "trace.json").read_text())["traceEvents"])

    (tmp_path / "transformer.mlir").write_text(LAYER)
    assert sdy_report.main(["transformer.mlir"]) == 0, "a report takes the place of a report"
    notes = tmp_path / "notes.html"
    notes.write_text("mine")
    assert sdy_report.main(["transformer.mlir", "-o", str(notes)]) == 2
    assert "the file exists and is not a report" in capsys.readouterr().err
    assert notes.read_text() == "mine"
    assert sdy_report.main(["transformer.mlir", "-o", str(notes), "--force"]) == 0
    assert notes.read_text().startswith("<!doctype html>")


def test_a_timeline_needs_hardware(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sdy_report.main([str(EXAMPLE), "--perfetto", "trace.json"])
    assert "--perfetto needs --hardware" in capsys.readouterr().err
    with pytest.raises(ValueError, match="hardware="):
        sdy.report(sdy.parse(LAYER)).write_trace(tmp_path / "trace.json")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.mlir"], "cannot read the file"),
        (["train.py"], "train.py:1:1: error: a Python file is not a program: write the text of `jax.jit(f).lower"),
        ([str(EXAMPLE), "--hardware", "abacus"], "no hardware preset or file has this name"),
        ([str(EXAMPLE), "-o", "no/folder/page.html"], "cannot write the file"),
    ],
)
def test_wrong_words(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sdy_report.main(words) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_program_of_one_device_and_one_that_is_partitioned() -> None:
    module = sdy.parse(EXAMPLE.read_text())
    sdy.propagate(module)
    whole = sdy.report(module).data
    sdy.partition(module)
    found = sdy.report(module).data
    assert sum(each["bytes"] for each in collectives(found)) == sum(each["bytes"] for each in collectives(whole))
    assert len(operations(module)) > len(found["rows"]["op"]) > 100
