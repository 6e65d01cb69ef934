"""The equations of a jaxpr, with those of the jaxprs inside it."""

from collections.abc import Container, Iterator
from typing import Any

from jax.extend.core import jaxprs_in_params


def equations_of(jaxpr: Any, opaque: Container[str] = ()) -> Iterator[Any]:
    """Yield the equations of `jaxpr`, a `Jaxpr` or `ClosedJaxpr`, and of the jaxprs in their parameters.

    Args:
        jaxpr: The jaxpr to walk.
        opaque: Names of primitives whose own jaxprs are skipped.
    """
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        if equation.primitive.name not in opaque:
            for inner in jaxprs_in_params(equation.params):
                yield from equations_of(inner, opaque)
