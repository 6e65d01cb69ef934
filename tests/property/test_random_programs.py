"""Random programs: all devices together compute the result of one device."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sdy
from partitioned_programs import assert_same_as_whole, partitioned
from random_programs import random_program
from samples import sample


@given(st.randoms(use_true_random=False), st.integers(1, 6), st.integers(0, 2**31))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_devices_compute_the_same_in_the_interpreter(choose: random.Random, num_operations: int, seed: int):
    program = random_program(choose, num_operations)
    whole = program.module()
    values = np.random.default_rng(seed)
    inputs = [values.integers(-9, 9, argument.shape, np.int32) for argument in program.arguments]
    for result, expected in zip(sdy.interpret(partitioned(whole), *inputs), sdy.interpret(whole, *inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("seed", sample(range(6), one_in=2))
def test_devices_compute_the_same_through_xla(seed: int):
    whole = random_program(random.Random(seed), num_operations=8).module()
    assert_same_as_whole(whole, partitioned(whole))
