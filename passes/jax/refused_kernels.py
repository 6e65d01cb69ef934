"""Pallas kernels in a program for several devices, which jax refuses to lower for a TPU: these are told by name."""

import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from sdy.diagnostics import DiagnosticError, Location, error
from sdy.passes.common.suggested_rule import suggest_operator
from sdy.passes.jax.equations import equations_of

_REFUSED = "cannot be automatically partitioned"

_PARTITIONED = ("custom_partitioning", "operator", "shard_map")
"""What says itself what each device computes of that which is in it."""


@contextmanager
def refused_kernels_told(jaxpr: Callable[[], Any]) -> Generator[None]:
    """Tell the kernel for which jax refuses in the `with` block to lower a program, which `jaxpr` gives.

    Raises DiagnosticError with the line of the kernel, its name and what to write. What jax refuses otherwise it
    raises itself.
    """
    try:
        yield
    except NotImplementedError as problem:
        kernel = next(_kernels(jaxpr()), None) if _REFUSED in str(problem) else None
        if kernel is None:
            raise
        raise _refusal(kernel, problem) from problem


def _refusal(kernel: Any, problem: NotImplementedError) -> DiagnosticError:
    name = kernel.params.get("name")
    called = f"the Pallas kernel '{name}'" if name else "a Pallas kernel"
    given, made = ([each.aval.shape for each in values] for values in (kernel.invars, kernel.outvars))
    message = f"{called} has no annotation, and jax does not let a compiler partition one without: {problem}"
    return error(_place(problem), message, suggest_operator(given, made))


def _place(problem: NotImplementedError) -> Location | None:
    """Where the kernel is called, as jax tells it by what it gives as the cause."""
    calls = [*traceback.walk_tb(problem.__cause__.__traceback__)] if problem.__cause__ else []
    return Location(calls[-1][0].f_code.co_filename, calls[-1][1], 1) if calls else None


def _kernels(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations that call kernels, also those in functions that are called."""
    return (each for each in equations_of(jaxpr, opaque=_PARTITIONED) if each.primitive.name == "pallas_call")
