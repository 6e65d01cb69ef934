"""Lint finds each planted mistake once, names its cause, and suggests a fix with which the program costs less."""

import pytest

import sdy
from lint_programs.mistakes import MISTAKES
from sdy.diagnostics import capture


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_found_once_with_its_cause_and_a_fix_that_helps(name: str) -> None:
    mistake = MISTAKES[name]
    with capture():
        findings = sdy.lint(mistake.written.lowered())
    (finding,) = findings
    assert finding.rule == mistake.rule
    assert mistake.cause in str(findings)
    assert bool(finding.compared) == mistake.has_cure
    if finding.compared:
        assert finding.cure
        assert finding.received or finding.held
