"""`sdy-lint` and `sdy.lint`: findings, their formats, and suppression."""

import json
import re
from pathlib import Path

import pytest

import sdy
from sdy.diagnostics import Diagnostic, Location, Severity
from sdy.passes.account.lint.baseline import Baseline
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.config import options_in
from sdy.passes.account.lint.findings import Finding, Findings
from sdy.passes.account.lint.formats import as_json, github
from sdy.passes.account.name_lists import several
from sdy.passes.driver import Source
from sdy.tools import sdy_lint

PROGRAM: str = """\
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %up: tensor<1024x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("up"),
    %down: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("down"))
    -> tensor<1024x1024xf32> {
  %0 = stablehlo.dot %x, %up : (tensor<1024x1024xf32>, tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %1 = stablehlo.dot %0, %down : (tensor<1024x4096xf32>, tensor<4096x1024xf32>) -> tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}
"""
LINE = 8
RULE = "conflict-by-order"
CURED = PROGRAM.replace('[{}, {"model"}]>} loc("down")', '[{"model"}, {}]>} loc("down")')


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(PROGRAM)


SUMMARY = (
    "1 finding: each device receives 1 MiB more and needs 4.5 MiB more memory\n"
    "partitioned by sdy, not by XLA as under jax.jit"
)
NONE = "no findings\npartitioned by sdy, not by XLA as under jax.jit\n"


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 1) -> str:
    assert sdy_lint.main(["step.mlir", *words]) == status
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert sdy_lint.main([*words]) == 2
    return capsys.readouterr().err


def finding(**changes: object) -> Finding:
    fields = {"rule": RULE, "where": Location("a.py", 3, 5), "caller": None, "what": "a thing", "cure": "another"}
    return Finding(**{**fields, **changes})  # pyright: ignore[reportArgumentType]


def test_a_finding_is_the_compilers_diagnostic_and_the_last_lines_sum_up(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    assert text.startswith("step.mlir:8:8: warning: two operands of stablehlo.dot have conflicting shardings: ")
    assert f"[{RULE}]\n  %1 = stablehlo.dot %0, %down" in text
    assert "\n       ^\n" in text
    assert (
        'note: argument 2 (down) has axis "model" in dimension 1, from the sharding given to argument 2 (down)\n'
        in text
    )
    assert (
        'note: fix: shard argument 2 (down) as P("model", None); with it, a device receives 1 MiB instead of 2 MiB'
        in text
    )
    assert text.endswith(f"\n\n{SUMMARY}\n")


def test_nothing_found_is_said_and_is_success(capsys: pytest.CaptureFixture[str]) -> None:
    Path("step.mlir").write_text(CURED)
    assert told(capsys, status=0) == NONE
    assert told(capsys, "--format", "github", status=0) == ""


def test_findings_are_an_object() -> None:
    findings = sdy.lint(sdy.parse(PROGRAM, "step.mlir"))
    assert findings
    assert [(each.rule, each.where and each.where.line) for each in findings] == [(RULE, LINE)]
    assert len(findings) == 1
    assert str(findings).endswith(f"\n{SUMMARY}")
    assert not sdy.lint(sdy.parse(CURED))


def test_a_module_is_left_as_it_is() -> None:
    module = sdy.parse(PROGRAM)
    before = sdy.format(module)
    sdy.lint(module)
    assert sdy.format(module) == before


def test_propagated_and_partitioned_modules_are_not_propagated_again() -> None:
    module = sdy.parse(PROGRAM)
    sdy.propagate(module)
    assert [each.rule for each in sdy.lint(module)] == [RULE]
    read_again = sdy.parse(sdy.format(module))
    assert [each.rule for each in sdy.lint(read_again)] == [RULE]
    sdy.partition(module)
    assert not sdy.lint(module)


def test_a_module_has_its_arguments_already() -> None:
    with pytest.raises(TypeError, match="already has its arguments"):
        sdy.lint(sdy.parse(PROGRAM), 1)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    kept = json.loads(told(capsys, "--format", "json"))
    assert {*kept} == {"version", "findings", "bytes_received", "bytes_held"}
    (entry,) = kept["findings"]
    assert {*entry} == {
        *("rule", "severity", "file", "line", "column", "message", "cure"),
        *("edits", "bytes_received", "bytes_held", "more_like_it", "others", "removes", "reasons"),
    }
    assert (entry["rule"], entry["file"], entry["line"], entry["column"]) == (RULE, "step.mlir", LINE, 8)
    assert entry["bytes_received"] == kept["bytes_received"] == 1024 * 1024
    assert {*entry["reasons"][0]} == {"file", "line", "column", "message"}


def test_github(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = told(capsys, "--format", "github").splitlines()
    assert line.startswith("::warning file=step.mlir,line=8,col=8,title=sdy-lint conflict-by-order::two operands of")
    assert "%0Afix: shard argument 2 (down)" in line


def test_github_format_is_escaped() -> None:
    bad = finding(where=Location("a,b:c%\n.py", 1, 2), what="50%\r\n::error::", severity=Severity.REMARK)
    line = github(Findings([bad]))
    assert line.startswith("::notice file=a%2Cb%3Ac%25\\n.py,line=1,col=2,title=sdy-lint conflict-by-order::")
    assert line.count("\n") == 1
    assert "50%25\\r%0A::error::" in line


def test_terminal_control_characters_are_escaped() -> None:
    bad = finding(what="\x1b[31m\u202ered", where=Location("\x1b.py", 1, 1))
    for text in (str(bad), github(Findings([bad])), as_json(Findings([bad]))):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_findings_without_a_place_are_written() -> None:
    nowhere = Findings([finding(where=None)])
    assert str(nowhere).startswith("warning: a thing")
    assert json.loads(as_json(nowhere))["findings"][0]["file"] is None
    assert github(nowhere).startswith("::warning title=sdy-lint")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--select", RULE], 1),
        (["--select", "unused-axis,lost-constraint"], 0),
        (["--ignore", RULE], 0),
        (["--select", RULE, "--ignore", RULE], 0),
        (["--large", "1M"], 1),
        (["--large", "5M"], 0),
    ],
)
def test_what_is_asked_for(words: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, *words, status=status)


def test_a_baseline_keeps_what_there_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--write-baseline", "kept.json", status=0) == ""
    assert told(capsys, "--baseline", "kept.json", status=0) == NONE
    Path("step.mlir").write_text("// a line more\n" + PROGRAM)
    assert told(capsys, "--baseline", "kept.json", status=0) == NONE
    Path("step.mlir").write_text(PROGRAM.replace("1024", "4096"))
    assert "1 finding" in told(capsys, "--baseline", "kept.json")


def test_more_of_what_is_in_a_baseline_is_new() -> None:
    kept = Baseline.of(Findings([finding()]))
    assert Baseline.read(Source(kept.text, "kept.json")) == kept
    assert not kept.new(Findings([finding()]))
    assert kept.new(Findings([finding(like=1)]))
    assert Baseline.read(Source(Baseline({}).text, "kept.json")) == Baseline({})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "kept.json:1:2: error: invalid JSON"),
        ("[]", "kept.json:1:1: error: not an sdy-lint baseline: write one with --write-baseline"),
        ('{"version": 2, "findings": []}', "kept.json:1:1: error: not an sdy-lint baseline"),
        ('{"version": 1, "findings": [1]}', "kept.json:1:1: error: a baseline entry must have rule, file, what and"),
        (
            '{"version": 1, "findings": [{"rule": "a", "file": "b", "what": "c", "count": true}]}',
            "kept.json:1:1: error",
        ),
    ],
)
def test_invalid_baseline_is_refused(text: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kept.json").write_text(text)
    assert refused(capsys, "step.mlir", "--baseline", "kept.json").startswith(problem)


@pytest.mark.parametrize("rules", [RULE, f"unused-axis, {RULE}"])
def test_a_comment_allows_what_a_line_does(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = PROGRAM.splitlines()
    lines[LINE - 1] += f"  // sdy: allow({rules})"
    Path("step.mlir").write_text("\n".join(lines))
    told(capsys, status=0)
    lines = PROGRAM.splitlines()
    lines.insert(LINE - 1, f"  // sdy: allow({rules})")
    Path("step.mlir").write_text("\n".join(lines))
    told(capsys, status=0)


def test_a_comment_of_the_line_above_is_of_that_line_alone(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PROGRAM.splitlines()
    lines[LINE - 2] += f"  // sdy: allow({RULE})"
    Path("step.mlir").write_text("\n".join(lines))
    told(capsys)


def in_python(name: str) -> str:
    return PROGRAM.replace(
        "-> tensor<1024x1024xf32>\n  return", f'-> tensor<1024x1024xf32> loc("{name}":2:5)\n  return'
    )


def test_comments_of_python_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("step.mlir").write_text(in_python("model.py"))
    assert told(capsys).startswith("model.py:2:5: warning")
    Path("model.py").write_text("def f(x):\n    return x @ w\n")
    assert "\n    return x @ w\n    ^\n" in told(capsys)
    Path("model.py").write_text(f"def f(x):\n    return x @ w  # sdy: allow({RULE})\n")
    told(capsys, status=0)
    Path("model.py").write_text(f"def f(x):\n    return x @ w  // sdy: allow({RULE})\n")
    told(capsys)


def test_only_python_and_mlir_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("secret.txt").write_text(f"one\nsecret # sdy: allow({RULE})\n")
    Path("step.mlir").write_text(in_python("secret.txt"))
    assert "secret #" not in told(capsys)
    Path("folder.py").mkdir()
    Path("step.mlir").write_text(in_python("folder.py"))
    told(capsys)


def test_a_comment_with_no_rule_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PROGRAM.splitlines()
    lines[LINE - 1] += "  // sdy: allow(conflict-by-odor)"
    Path("step.mlir").write_text("\n".join(lines))
    problem = refused(capsys, "step.mlir")
    assert problem.startswith(
        "step.mlir:8:8: error: unknown rule 'conflict-by-odor': did you mean 'conflict-by-order'?"
    )


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("sdy-lint.toml", f'ignore = ["{RULE}"]', 0),
        ("sdy-lint.toml", 'select = ["unused-axis"]', 0),
        ("sdy-lint.toml", 'large = "5M"', 0),
        ("sdy-lint.toml", "large = 5000000", 0),
        ("sdy-lint.toml", f'[allow]\n"*.mlir" = ["{RULE}"]', 0),
        ("sdy-lint.toml", f'[allow]\n"model/*.mlir" = ["{RULE}"]', 1),
        ("pyproject.toml", f'[tool.sdy.lint]\nignore = ["{RULE}"]', 0),
        ("pyproject.toml", '[tool.ruff]\nselect = ["E"]', 1),
    ],
)
def test_options_are_read_from_files(name: str, text: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).write_text(text)
    told(capsys, status=status)


def test_the_command_line_comes_before_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sdy-lint.toml").write_text('select = ["unused-axis"]\nlarge = "5M"')
    told(capsys, "--select", RULE, "--large", "1M")
    Path("other.toml").write_text("")
    told(capsys, "--config", "other.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("select = ", "sdy-lint.toml:1:10: error: invalid TOML"),
        ('select = "unused-axis"', 'error: select must be a list of rules, such as ["unused-axis"]'),
        ('select = ["unsed-axis"]', "error: unknown rule 'unsed-axis': did you mean 'unused-axis'?"),
        ("larg = 1", "error: unknown lint option 'larg': did you mean 'large'?"),
        ('large = "much"', "error: large: 'much' is not a size"),
        ("large = true", "error: large: 'True' is not a size"),
        ("allow = 1", "error: allow must map file patterns to rules"),
        ('[allow]\n"*.py" = 1', 'error: allow."*.py" must be a list of rules'),
        ('[allow]\n"*.py" = ["a"]', "error: unknown rule 'a'"),
    ],
)
def test_invalid_configuration_is_refused(text: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sdy-lint.toml").write_text(text)
    assert problem in refused(capsys, "step.mlir")


def test_a_table_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.sdy]\nlint = 1\n")
    assert "pyproject.toml:1:1: error: the lint options must be a table" in refused(capsys, "step.mlir")


def test_allowed_files_are_found_from_the_working_directory() -> None:
    module = sdy.parse(PROGRAM, str(Path.cwd() / "model" / "step.mlir"))
    options = options_in(Source(f'[allow]\n"model/*.mlir" = ["{RULE}"]', "sdy-lint.toml"))
    assert not sdy.lint(module, lint_options=options)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["missing.mlir"], "missing.mlir:1:1: error: cannot read the file"),
        (["step.mlir", "--select", "unused-axe"], "unknown rule 'unused-axe': did you mean 'unused-axis'?"),
        (["step.mlir", "--ignore", ""], "unknown rule ''"),
        (["step.mlir", "--large", "big"], "--large: 'big' is not a size"),
        (["step.mlir", "--config", "missing.toml"], "missing.toml:1:1: error: cannot read the file"),
        (["step.mlir", "--write-baseline", "no/where.json"], "no/where.json:1:1: error: cannot write the file"),
        (["--explain", "unused"], "unknown rule 'unused': did you mean 'unused-axis'?"),
    ],
)
def test_what_is_wrong_is_told(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert problem in refused(capsys, *words)


def test_a_program_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("step.mlir").write_text("func.func @main() { retrun }")
    assert "step.mlir:1:21: error" in refused(capsys, "step.mlir")


@pytest.mark.parametrize("words", [[], ["step.mlir", "--list"], ["step.mlir", "--explain", RULE]])
def test_a_file_or_a_question(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        sdy_lint.main(words)
    assert ended.value.code == 2
    assert "give either a FILE, or --explain or --list" in capsys.readouterr().err


def test_rules_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert sdy_lint.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == [*RULES]
    assert sdy_lint.main(["--explain", RULE]) == 0
    assert capsys.readouterr().out == f"{RULE}\n\n{RULES[RULE].text}\n"


def test_findings_that_differ_only_in_layer_have_one_key() -> None:
    whats = {finding(what=f"argument {n} (params[{n}]['w']) is wrong").key for n in range(12)}
    assert len(whats) == 1


def test_python_and_the_command_name_their_own_option_for_findings_below_the_threshold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    large = sdy.LintOptions(large="64M")
    below = sdy.lint(sdy.parse(PROGRAM, "step.mlir"), lint_options=large)
    assert below.summary == 'no findings above 64 MiB; 1 below it: lint_options=sdy.LintOptions(large="2M")'
    assert "no findings above 64 MiB; 1 below it: --large 2M\n" in told(capsys, "--large", "64M", status=0)


def test_reasons_and_findings_are_readable_in_lists() -> None:
    reason = Diagnostic(Severity.NOTE, Location("a.py", 3, 5), "it was\nso")
    assert repr((reason,)) == "(<a.py:3:5: note: it was\\nso>,)"
    assert repr([finding(received=2**20)]) == f"[<{RULE} at a.py:3: a thing: each device receives 1 MiB more>]"


def test_further_occurrences_and_removed_findings_are_named() -> None:
    other = finding(rule="late-cast", where=Location("b.py", 9, 1))
    text = str(finding(like=2, others=("argument 1 (ws[1])", "argument 2 (ws[2])"), removes=(other,)))
    assert "a thing (and 2 more like it: ws[1..2])" in text
    assert "the fix removes another finding too: late-cast at b.py:9" in text
    assert "(and 2 more like it at this line)" in str(finding(like=2))
    assert "in `Finding.removes`" in str(
        finding(removes=tuple(finding(where=Location("b.py", n, 1)) for n in range(9)))
    )


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (["argument 0 (a)", "argument 1"], "argument 0 (a) and argument 1"),
        (
            [f"argument {n} (p[{n}]['w'])" for n in range(4)],
            "argument 0 (p[0]['w']), argument 1 (p[1]['w']) and p[2..3]['w']",
        ),
        ([f"argument {n}" for n in (0, 1, 3, 4, 7)], "argument 0, argument 1 and argument 3..4,7"),
        ([f"p[{n}][{m}]" for n, m in ((0, 0), (9, 9), (1, 2), (2, 3))], "p[0][0], p[9][9] and p[*][*]"),
        ([chr(n) for n in range(97, 109)], "a, b, c, d, e, f, g, h and 4 more in `Finding.edits`"),
    ],
)
def test_many_names_are_listed_with_ranges(names: list[str], listed: str) -> None:
    assert several(names) == listed


def test_a_constraint_may_name_an_axis_of_size_1() -> None:
    """The linted program has no such axes."""
    (found,) = sdy.lint(
        sdy.parse("""
        sdy.mesh @mesh = <["data"=1, "model"=8]>
        func.func @main(%x: tensor<64x1048576xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
            -> (tensor<64x4xf32>, tensor<64x4xi32>) {
          %0 = sdy.sharding_constraint %x <@mesh, [{"data"}, {}]> : tensor<64x1048576xf32>
          %values, %places = chlo.top_k(%0, k = 4) : tensor<64x1048576xf32> -> (tensor<64x4xf32>, tensor<64x4xi32>)
          return %values, %places : tensor<64x4xf32>, tensor<64x4xi32>
        }""")
    )
    assert found.rule == "costly-constraint"
    assert found.received > 223 * 2**20
