"""Diagnostics for unannotated Pallas kernels, which jax refuses to lower for several TPU devices."""

import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from sdy.diagnostics import DiagnosticError, Location, error
from sdy.passes.common.suggested_rule import suggest_operator
from sdy.passes.jax.jax_internals import equations_of

_REFUSED = "cannot be automatically partitioned"

_PARTITIONED = ("custom_partitioning", "operator", "shard_map")
"""The primitives that determine themselves what each device computes, so that jax lowers kernels inside them."""


@contextmanager
def explain_refused_kernels(jaxpr: Callable[[], Any]) -> Generator[None]:
    """Report the Pallas kernel that jax refuses to lower in the `with` block.

    Args:
        jaxpr: A function that returns the jaxpr of the program.

    Raises:
        DiagnosticError: jax refuses a kernel; with the line and the name of the kernel, and a suggested annotation.
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
    described = f"the Pallas kernel '{name}'" if name else "a Pallas kernel"
    operands, results = ([each.aval.shape for each in values] for values in (kernel.invars, kernel.outvars))
    message = f"{described} has no annotation, without which jax refuses to partition it: {problem}"
    return error(_place(problem), message, suggest_operator(operands, results))


def _place(problem: NotImplementedError) -> Location | None:
    """Return the location of the kernel call, from the traceback of the cause of `problem`."""
    calls = [*traceback.walk_tb(problem.__cause__.__traceback__)] if problem.__cause__ else []
    return Location(calls[-1][0].f_code.co_filename, calls[-1][1], 1) if calls else None


def _kernels(jaxpr: Any) -> Iterator[Any]:
    """Yield the `pallas_call` equations, including those in nested jaxprs."""
    return (each for each in equations_of(jaxpr, opaque=_PARTITIONED) if each.primitive.name == "pallas_call")
