"""Round trip of the corpus through bytecode and portable artifacts."""

import pytest

import sdy
from corpus import PROGRAMS
from samples import sample
from sdy.text import bytecode
from sdy.text.bytecode import jaxlib_converter

VERSIONS = ("1.9.0", "1.10.0", "1.13.0")
"""Releases of StableHLO."""


def _in_this_process(data: bytes, what: str, *options: str) -> bytes:
    status, written = jaxlib_converter.run_command(what, options, data)
    assert status == 0, written
    return written


@pytest.fixture(autouse=True)
def no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert in this process, which has jaxlib already."""
    monkeypatch.setattr(bytecode, "run_jaxlib", _in_this_process)


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=20))
def test_a_program_comes_back_from_bytecode(name: str):
    module = PROGRAMS[name].module()
    assert sdy.format(sdy.parse(sdy.to_bytecode(module))) == sdy.format(module)


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=20))
def test_a_program_comes_back_from_each_version(name: str):
    """Compare without the attributes that have default values, which artifacts omit."""
    module = PROGRAMS[name].module()
    first, *others = (sdy.format(sdy.parse(sdy.to_bytecode(module, version))) for version in VERSIONS)
    assert all(other == first for other in others)
    assert sdy.format(sdy.parse(sdy.to_bytecode(sdy.parse(first)))) == sdy.format(sdy.parse(first))
    assert first.count("stablehlo.") == sdy.format(module).count("stablehlo.")
