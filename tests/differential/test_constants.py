"""Constants are split by use and merged again, compared with the C++ passes."""

import random
from collections.abc import Iterable

import pytest

from constant_programs import Shape, Uses, called_functions, cases, function
from oracle import oracle
from samples import sample
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline
from sdy.text import format, parse
from sdy.text.dialects import context

SPLITTER = "sdy-constant-or-scalar-splitter"
MERGER = "func.func(sdy-constant-or-scalar-merger)"


def module(chosen: Iterable[tuple[str, Shape, tuple[str, ...], Uses]]) -> str:
    functions = [function(f"f{index}", *case) for index, case in enumerate(chosen)]
    return "\n".join(['sdy.mesh @mesh = <["x"=2]>', *filter(None, functions), *called_functions()])


def run(text: str, *passes: str) -> str:
    parsed = parse(text, ctx=context(allow_unregistered=True))
    for name in passes:
        run_passes(parsed, parse_pipeline(name))
    return format(parsed)


def assert_same_functions(ours: str, theirs: str) -> None:
    mark = "  func.func "
    for our, their in zip(ours.split(mark), theirs.split(mark), strict=True):
        assert our == their


@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_constants_are_copied_and_merged(num_steps: int):
    all_cases = cases(num_steps)
    chosen = sample(random.Random(0).sample(all_cases, min(len(all_cases), 1200)), one_in=20)
    text = module(chosen)
    split = oracle(text, SPLITTER)
    assert_same_functions(run(text, SPLITTER), split)
    for constants in (text, split):
        assert_same_functions(run(constants, MERGER), oracle(constants, MERGER))
