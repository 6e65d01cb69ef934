"""Every partitioned program of the corpus computes the unpartitioned results: on eight devices, and interpreted."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sdy
from corpus import PROGRAMS
from partitioned_programs import Argument, D, M, X, Y, assert_same, constrain, lower, partitioned, program
from samples import sample
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate
from sdy.passes.jax.api.compile import compile, compile_unpartitioned
from sdy.passes.jax.hlo_collectives import collectives, total
from sdy.passes.jax.program.inputs import random_inputs, rounded_otherwise
from sdy.passes.jax.program.rounding import Rounding, first_mismatch


def arrays(results: Sequence[Any]) -> list[Any]:
    return [np.asarray(result) for result in results]


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=30))
def test_devices_together_compute_what_one_does(name: str):
    original = PROGRAMS[name].module()
    local = partitioned(original)
    compiled, whole = compile(local), compile_unpartitioned(original)
    inputs = random_inputs(compiled.inputs, seed=0)
    results, expected = arrays(compiled(*inputs)), arrays(whole(*inputs))
    assert_same(results, expected, PROGRAMS[name].tolerance)

    def again(relative: float) -> list[Any]:
        return arrays(whole(*rounded_otherwise(inputs, relative)))

    assert first_mismatch(results, expected, Rounding.of(original), again) is None
    assert_same(sdy.interpret(local, *inputs), expected, PROGRAMS[name].tolerance)


def test_a_reshard_receives_hardly_more_than_a_device_needs():
    """XLA gathers twelve times as many bytes."""
    reshard = program(lambda x: constrain(x, None, (X, Y)), Argument((16, 64, 8), (Y, None, X)), mesh={X: 4, Y: 2})
    traffic = collectives(compile(partitioned(reshard.module())).compiled_text())
    assert traffic.keys() == {"all-to-all"}
    assert total(traffic).bytes <= 2 * (16 * 64 * 8 * 4 // 8)


def triangle(x: jax.Array) -> jax.Array:
    return jnp.linalg.qr(x)[1]


def test_unpartitionable_operation_is_replicated_with_a_warning_and_its_line():
    original = lower(triangle, Argument((16, 4), (D, M)))
    module = original.clone()
    with capture() as warnings:
        propagate(module)
        partition(module)
    assert warnings
    for warning in warnings:
        assert "'stablehlo.custom_call' op @lapack_s" in warning.message
        assert " is replicated on every device: " in warning.message
        assert warning.location is not None
        assert (warning.location.filename, warning.location.line) == (__file__, triangle.__code__.co_firstlineno + 1)
    compiled = compile(module)
    inputs = random_inputs(compiled.inputs, seed=0)
    assert_same(compiled(*inputs), compile_unpartitioned(original)(*inputs), 1e-4)
