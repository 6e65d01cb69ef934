"""Warnings of compilation: location, reason, cost and remedy."""

import inspect
import logging
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import sdy
from corpus import PROGRAMS
from sdy.diagnostics import capture
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
MATRIX = np.eye(8, dtype=np.float32) * 3
ROWS: dict[str, Any] = {"mesh": MESH, "in_shardings": P("data")}


def factor(x: jax.Array) -> jax.Array:
    return jnp.linalg.cholesky(x)


def line_in(function: Function[Any]) -> int:
    """Return the line of the body of `function`."""
    return inspect.getsourcelines(function)[1] + 1


def test_a_warning_says_where_what_and_how_many_bytes():
    """A device has two rows of eight numbers, and receives the six others."""
    with pytest.warns(sdy.ComputedWholeWarning) as told:
        sdy.jit(factor, **ROWS)(MATRIX)
    (warning,) = told
    assert (warning.filename, warning.lineno) == (__file__, line_in(factor))
    assert str(warning.message) == (
        "'stablehlo.custom_call' op @lapack_spotrf_ffi is replicated on every device: its sharding rule does not "
        "let these dimensions be split (each device receives 192 bytes more)"
    )


def again() -> Callable[..., Any]:
    """Return a copy of `factor` that jax has not compiled yet."""

    @wraps(factor)
    def run(x: jax.Array) -> jax.Array:
        return factor(x)

    return run


def test_recompilation_does_not_repeat_a_warning():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(2):
            sdy.jit(again(), **ROWS)(MATRIX)
            assert sdy.jit(again(), **ROWS).lower(MATRIX).device_text()
    assert [each.category for each in told] == [sdy.ComputedWholeWarning], "\n".join(map(str, told))


def test_warnings_can_be_errors():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=sdy.ShardingWarning)
        with pytest.raises(sdy.ComputedWholeWarning, match="192 bytes"):
            sdy.jit(again(), **ROWS)(MATRIX)


@pytest.mark.parametrize("name", ["convolutions: blur by slices", "decoding: sample"])
def test_small_replicated_operations_give_no_warning(name: str):
    """Tensors computed replicated in these programs are no larger than a device's shard."""
    module = PROGRAMS[name].module()
    with capture() as told:
        sdy.propagate(module)
        sdy.partition(module)
    assert told == []


def test_steps_of_compiling_are_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "sdy"):
        sdy.jit(jnp.sin, **ROWS)(MATRIX)
    assert [text.split(" in ")[0] for text in caplog.messages if text.startswith("Finished")] == [
        f"Finished {step} of jit(sin)" for step in ("parsing", "propagation", "partitioning")
    ]
