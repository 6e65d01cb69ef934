"""MPMD modules are printed as MLIR prints them."""

from pathlib import Path

import pytest

from pipelines import Training
from sdy.passes.jax.mpmd import shardy_compiler
from sdy.text import format, parse

LIT_TESTS = Path(__file__).parents[2] / "lit_tests" / "mpmd"


def test_every_operation_is_printed_as_mlir_prints_it():
    text = (LIT_TESTS / "operations.mlir").read_text()
    custom, generic = shardy_compiler.ask(text, {}, {"print_generic_op_form": True})
    assert format(parse(text)).rstrip() == custom.rstrip()
    assert format(parse(text), generic=True).rstrip() == generic.rstrip()


@pytest.mark.parametrize(
    "phases", [["IMPORT"], ["IMPORT", "OPTIMIZE"], ["IMPORT", "OPTIMIZE", "PARTITION"]], ids="".join
)
def test_each_phase_of_shardys_compiler_is_printed_as_mlir_prints_it(phases: list[str]):
    text = Training(layers=(1, 2), microbatches=3, tied=True).partitioned(phases)
    assert format(parse(text)).rstrip() == text.rstrip()
