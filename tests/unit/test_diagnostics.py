import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnknownLoc,
)

import sdy
from samples import sample
from sdy.diagnostics import (
    DiagnosticError,
    Location,
    Severity,
    capture,
    error,
    handling,
    location_of,
    op_error,
    printed_once,
    register_source,
    remark,
    warn,
)
from sdy.passes.driver import Source
from sdy.tools.expected_diagnostics import mismatches


def at(line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr("here.mlir"), IntAttr(line), IntAttr(column))


def module_at(line: int, column: int) -> ModuleOp:
    module = ModuleOp([])
    module.location = at(line, column)
    return module


def test_an_error_shows_its_line_a_caret_and_its_notes():
    register_source("here.mlir", "first\n\tsecond line\nthird")
    err = error(module_at(2, 5), "is wrong", "because", (Location("else.mlir", 1, 2), "of this"))
    assert str(err).split("\n") == [
        "here.mlir:2:5: error: is wrong",
        "\tsecond line",
        "\t   ^",
        "here.mlir:2:5: note: because",
        "\tsecond line",
        "\t   ^",
        "else.mlir:1:2: note: of this",
    ]
    assert (err.message, err.where) == ("is wrong", Location("here.mlir", 2, 5))


def test_an_operation_error_names_the_operation():
    assert op_error(ModuleOp([]), "is wrong").message == "'builtin.module' op is wrong"


def test_a_place_nobody_knows():
    assert str(error(None, "is wrong")) == "error: is wrong"


def test_a_line_the_source_does_not_have_is_left_out():
    register_source("here.mlir", "only\n", first_line=10)
    assert str(error(Location("here.mlir", 10, 1), "m")) == "here.mlir:10:1: error: m\nonly\n^"
    assert str(error(Location("here.mlir", 13, 1), "m")) == "here.mlir:13:1: error: m"
    assert str(error(Location("here.mlir", 9, 1), "m")) == "here.mlir:9:1: error: m"


@pytest.mark.parametrize(
    "nested",
    [
        NameLoc(StringAttr("name"), at(3, 4)),
        CallSiteLoc(at(3, 4), at(5, 6)),
        FusedLoc((UnknownLoc(), at(3, 4), at(5, 6)), StringAttr("")),
    ],
)
def test_the_place_of_a_nested_location(nested: NameLoc | CallSiteLoc | FusedLoc):
    assert location_of(nested) == Location("here.mlir", 3, 4)


def test_warnings_go_to_the_innermost_handler(capsys: pytest.CaptureFixture[str]):
    with handling(printed_once()):
        with capture() as outer:
            warn(None, "one")
            with capture() as inner:
                remark(None, "two")
        warn(None, "three")
    assert [(d.severity, d.message) for d in outer] == [(Severity.WARNING, "one")]
    assert [(d.severity, d.message) for d in inner] == [(Severity.REMARK, "two")]
    assert capsys.readouterr().err == "warning: three\n"


def test_tools_print_a_warning_once_per_location_and_cause(capsys: pytest.CaptureFixture[str]):
    with handling(printed_once()):
        for place, cause in [(1, "one"), (1, "one"), (2, "one"), (1, "two"), (2, "one")]:
            warn(at(place, 1), cause)
    places = [f"here.mlir:{line}:1: warning: {cause}" for line, cause in [(1, "one"), (2, "one"), (1, "two")]]
    assert capsys.readouterr().err.splitlines() == places


def test_a_warning_that_nobody_handles_is_one_of_pythons():
    with pytest.warns(sdy.LostShardingWarning, match="is lost; here it is") as told:
        warn(at(3, 4), "is lost", "here it is", category=sdy.LostShardingWarning)
    assert [(each.filename, each.lineno) for each in told] == [("here.mlir", 3)]


def test_python_tells_a_warning_once_for_each_line_and_text():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for line in (1, 2, 1):
            warn(at(line, 1), "again")
    assert [each.lineno for each in told] == [1, 2]


def test_warnings_are_quieted_and_raised_by_their_class():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=sdy.ShardingWarning)
        warnings.filterwarnings("ignore", category=sdy.UnknownOperationWarning)
        warn(None, "nobody hears", category=sdy.UnknownOperationWarning)
        with pytest.raises(sdy.ComputedWholeWarning, match="costs"):
            warn(None, "costs", category=sdy.ComputedWholeWarning)


def test_remarks_are_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level("INFO", "sdy"):
        remark(at(1, 2), "by the way")
    assert caplog.messages == ["here.mlir:1:2: remark: by the way"]


def test_an_error_is_not_reported_but_raised():
    with capture() as diagnostics, pytest.raises(DiagnosticError):
        raise error(None, "is wrong")
    assert diagnostics == []


def test_a_mistake_is_told_with_its_consequences():
    with pytest.raises(DiagnosticError) as caught:
        sdy.parse('sdy.mesh @mesh = <["x"=2, y=2]>')
    assert [diagnostic.message for diagnostic in caught.value.diagnostics] == [
        "custom op 'sdy.mesh' expected string",
        "custom op 'sdy.mesh' failed to parse Sdy_MeshAxis parameter 'name' which is to be a `::llvm::StringRef`",
        "custom op 'sdy.mesh' failed to parse Sdy_Mesh parameter 'axes' which is to be a "
        "`::llvm::ArrayRef<MeshAxisAttr>`",
    ]
    assert str(caught.value).count("<stdin>:1:27: error: ") == 3


def test_one_comment_announces_the_same_diagnostic_any_number_of_times():
    source = Source("// expected-error @+1 {{wrong}}\nhere\n", "here.mlir")
    wrong = error(Location("here.mlir", 2, 1), "is wrong").diagnostic
    assert list(mismatches(source, [wrong, wrong])) == []
    (unexpected,) = mismatches(source, [wrong, error(None, "is wrong").diagnostic])
    assert unexpected.message == "unexpected error: is wrong"


@pytest.mark.parametrize("column", [1, 1000, 5000])
def test_of_a_long_line_the_part_around_the_place_is_shown(column: int):
    register_source("long.mlir", "".join("x" if index == column - 1 else "." for index in range(5000)))
    _, shown, caret = str(error(Location("long.mlir", 1, column), "is wrong")).splitlines()
    assert len(shown) < 250
    assert shown[caret.index("^")] == "x"


BAD = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}},
                %arg1: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}]>}}) -> tensor<8xf32> {{
  sdy.sharding_group %arg0 group_id={group} : tensor<8xf32>
  sdy.sharding_group %arg1 group_id={group} : tensor<8xf32>
  %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
  return %0 : tensor<{returned}xf32>
}}
"""


def test_each_thread_is_told_of_its_own_module():
    together = Barrier(2)

    def told_of(name: str, group: int, returned: int) -> tuple[list[Location | None], str]:
        together.wait()
        with capture() as diagnostics:
            sdy.propagate(sdy.parse(BAD.format(group=group, returned=8), f"{name}.mlir"))
            with pytest.raises(DiagnosticError) as refused:
                sdy.parse(BAD.format(group=group, returned=returned), f"{name}.mlir")
        return [diagnostic.location for diagnostic in diagnostics], str(refused.value)

    with ThreadPoolExecutor(2) as threads:
        for turn in sample(range(1000), one_in=20):
            tasks = {name: threads.submit(told_of, name, turn, size) for name, size in (("one", 4), ("two", 2))}
            for name, task in tasks.items():
                places, refusal = task.result()
                assert len(places) == 1
                assert {place and place.filename for place in places} == {f"{name}.mlir"}
                assert refusal.startswith(f"{name}.mlir:")
                assert f"tensor<{4 if name == 'one' else 2}xf32>" in refusal
