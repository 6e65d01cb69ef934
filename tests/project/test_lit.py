"""Each lit test is a pytest item."""

from pathlib import Path
from typing import Any

import lit.LitTestCase
import pytest

_SUITE: Any = lit.LitTestCase.load_test_suite([str(Path(__file__).parents[2] / "lit_tests")])
_CASES = {case.id(): case for case in _SUITE}


@pytest.mark.parametrize("name", _CASES)
def test_lit(name: str) -> None:
    _CASES[name].runTest()
