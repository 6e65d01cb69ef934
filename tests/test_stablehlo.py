"""The StableHLO and CHLO dialects: what MLIR prints is what is read and printed, and what MLIR refuses is refused."""

import pytest

from sdy.text import format as print_module
from sdy.text import parse
from tests.jax_programs import PROGRAMS, lowered


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_as_mlir_does(name: str):
    texts = lowered(name)
    assert print_module(parse(texts.pretty)).strip() == texts.pretty.strip()
    assert print_module(parse(texts.generic), generic=True).strip() == texts.generic.strip()
