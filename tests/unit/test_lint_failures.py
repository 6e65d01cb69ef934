"""A rule of lint, a list of its fixes or a trial that raises an exception costs no finding of another rule."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.diagnostics import capture
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.edits import Cure, LazyCures
from sdy.passes.account.lint.failures import raised_failures
from sdy.passes.account.lint.findings import Findings, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.tools import sdy_lint

PROGRAM = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
    %up: tensor<1024x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %down: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<1024x1024xf32> {
  %0 = stablehlo.dot %x, %up : (tensor<1024x1024xf32>, tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %1 = stablehlo.dot %0, %down : (tensor<1024x4096xf32>, tensor<4096x1024xf32>) -> tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}
"""
FOUND = "conflict-by-order"
"""The rule whose finding the program has."""
OTHER = "late-cast"


@pytest.fixture(autouse=True)
def _caught() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with raised_failures(False):
        yield


def raises(program: LintedProgram) -> Iterator[Suspicion]:
    """Yield a match, and raise an exception."""
    yield Suspicion(program.main, "a match of a rule that fails", "", received=2.0**30)
    raise KeyError("no such\naxis")


def lists_no_fixes(program: LintedProgram) -> Iterator[Suspicion]:
    """Yield a match whose fixes cannot be listed."""

    def cures() -> list[Cure]:
        raise RecursionError

    yield Suspicion(program.main, "a match whose fixes are not listed", "", received=2.0**30, cures=LazyCures(cures))


def lint() -> tuple[Findings, list[str]]:
    with capture() as reported:
        findings = sdy.lint(sdy.parse(PROGRAM))
    return findings, [each.message for each in reported]


def test_a_rule_that_fails_is_named_and_the_others_have_their_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, OTHER, replace(RULES[OTHER], check=raises))
    findings, warnings = lint()
    assert [each.rule for each in findings] == [FOUND]
    assert findings.failed == [OTHER]
    assert findings.summary.endswith(", without those of late-cast, which failed")
    (warning,) = warnings
    assert warning.startswith("""lint rule late-cast failed, its findings are missing: KeyError: 'no such\\naxis' (""")
    assert warning.endswith("); please report this")


def test_fixes_that_cannot_be_listed_cost_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, OTHER, replace(RULES[OTHER], check=lists_no_fixes))
    findings, (warning,) = lint()
    assert FOUND in {each.rule for each in findings}
    assert findings.failed == [OTHER]
    assert "lint rule late-cast failed" in warning
    assert "RecursionError (" in warning


def test_a_trial_that_fails_leaves_a_finding_without_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Cure, module: ModuleOp) -> bool:
        raise AssertionError

    monkeypatch.setattr(Cure, "apply", fail)
    findings, (warning,) = lint()
    assert [(each.rule, each.compared) for each in findings] == [(FOUND, "")]
    assert findings.failed == []
    assert warning.startswith("lint could not try a fix, to leave argument 0 open: AssertionError (")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        pytest.param([], 2, id="beside findings"),
        pytest.param(["--select", OTHER], 2, id="without findings"),
        pytest.param(["--write-baseline", "lint.json"], 2, id="in a baseline"),
        pytest.param(["--ignore", OTHER], 1, id="ignored, beside findings"),
        pytest.param(["--select", "optimizer-state"], 0, id="not selected, without findings"),
    ],
)
def test_the_exit_status_is_2_if_a_wanted_rule_fails(
    words: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(PROGRAM)
    monkeypatch.setitem(RULES, OTHER, replace(RULES[OTHER], check=raises))
    assert sdy_lint.main(["step.mlir", *words]) == status
    printed = capsys.readouterr().err
    assert printed.count("please report this") == (status == 2)
    assert "Traceback" not in printed
