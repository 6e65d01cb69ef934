"""Lint finds each planted mistake once, with its cause and a fix that helps, and nothing in good programs."""

import pytest

import sdy
from lint_programs.good_libraries import LAYOUTS, LIBRARIES
from lint_programs.mistakes import MISTAKES
from samples import covering, sample
from sdy.diagnostics import capture


@pytest.mark.parametrize("name", sample(MISTAKES, one_in=3))
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


@covering
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_is_found_in_well_sharded_programs_of_libraries(library: str, layout: str) -> None:
    step, arguments = LIBRARIES[library](LAYOUTS[layout])
    with capture():
        assert sdy.lint(step, *arguments).summary == "no findings"
