"""Dimensions that their axes do not divide: partitioned programs compute what one device does."""

# jax does not declare all of its types.
# pyright: basic

import pytest

from partitioned_programs import Argument, assert_same_as_whole, lower, split
from random_programs import RandomProgram
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate


def test_what_is_computed_whole_is_told():
    module = lower(split(lambda x: x.reshape(-1)), Argument((13, 7)))
    propagate(module)
    with capture() as warnings:
        partition(module)
    assert [warning.message for warning in warnings] == [
        "'stablehlo.reshape' op is computed whole along the dimensions in which elements change devices"
    ]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_compute_the_same(seed: int):
    program = RandomProgram(seed, num_operations=8)
    original = lower(program, *program.arguments)
    module = original.clone()
    with capture():
        propagate(module)
        partition(module)
    assert_same_as_whole(original, module)
