"""Every program of the corpus, partitioned, computes what the whole one does: on eight devices, and interpreted."""

# jax does not declare all of its types.
# pyright: basic

import pytest

import sdy
from corpus import PROGRAMS
from partitioned_programs import assert_same, partitioned
from sdy.passes.execution.compile import compile, compile_unpartitioned
from sdy.passes.execution.inputs import random_inputs


@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_together_compute_what_one_does(name: str):
    original = PROGRAMS[name].module()
    local = partitioned(original)
    program = compile(local)
    inputs = random_inputs(program.inputs, seed=0)
    expected = compile_unpartitioned(original)(*inputs)
    assert_same(program(*inputs), expected, PROGRAMS[name].tolerance)
    assert_same(sdy.interpret(local, *inputs), expected, PROGRAMS[name].tolerance)
