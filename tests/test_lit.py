"""Each lit test is a pytest item."""

from pathlib import Path

import pytest
from lit.LitTestCase import LitTestCase, load_test_suite

_SUITE = load_test_suite([str(Path(__file__).parent.parent / "lit_tests")])
_CASES: dict[str, LitTestCase] = {case.id(): case for case in _SUITE}


@pytest.mark.parametrize("name", _CASES)
def test_lit(name: str) -> None:
    _CASES[name].runTest()
