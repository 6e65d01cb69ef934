"""Python callbacks in annotated operators, and in operations with custom partitioning."""

import json
import warnings

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import callback_programs
import forked_commands
import sdy
from samples import sample
from sdy.passes.jax.api.compile import compile


def test_calls_and_values_are_those_of_the_function_under_jax_jit():
    """This runs in a separate process: a missing callback crashes jaxlib."""
    names = sample(callback_programs.programs(), 6)
    done = forked_commands.run([callback_programs.__file__, *names])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(names, 0)


X = jax.device_put(callback_programs.X, NamedSharding(callback_programs.MESH, P("x")))


def test_a_function_that_calls_python_is_not_checked_with_random_numbers():
    callback_programs.CALLS.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdy.jit(callback_programs.operator(callback_programs.pure)).lower(X)
    assert not callback_programs.CALLS


def test_results_of_callbacks_are_on_all_devices():
    for jit in (sdy.jit, jax.jit):
        result = jit(callback_programs.operator(callback_programs.pure))(X)
        assert result.sharding.is_fully_replicated
        assert len(result.sharding.device_set) == callback_programs.MESH.size


def test_ordered_callback_in_custom_partitioning_is_refused():
    partitioned = callback_programs.partitioned_by_author(callback_programs.ordered)
    with pytest.raises(sdy.DiagnosticError, match="is partitioned into a function with ordered effects"):
        sdy.jit(partitioned)(X)


def test_a_module_does_not_hold_the_functions_of_an_operator():
    operator = callback_programs.operator(callback_programs.debug_callback)
    with pytest.raises(sdy.DiagnosticError, match="calls a Python function, which a module does not hold"):
        compile(sdy.from_jax(operator, X))
    np.testing.assert_allclose(sdy.jit(operator)(X), np.sin(X), rtol=1e-5)
