"""Traces of the function of an operator call: result types, effects, and use of Python callbacks.

jax keeps one list of callbacks for each lowered program, and the function that devices run on their shards is a program
of its own. A function with callbacks is therefore inlined into the surrounding program; its callbacks receive global
arrays, once, as they do outside of an operator.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax.core import ShapedArray

from sdy.operators.call import OperatorCall
from sdy.passes.jax.equations import equations_of
from sdy.passes.jax.jax_internals import trace_context

if TYPE_CHECKING:
    from sdy.passes.jax.operators.jax_operator import JaxOperator

_CALLBACKS = frozenset(
    ("buffer_callback", "debug_callback", "debug_print", "inspect_sharding", "io_callback", "pure_callback")
)
"""The jax primitives that call Python at run time or during compilation."""


class TracedCall(NamedTuple):
    """The result types and effects of a call; `calls_python` is true if its function has Python callbacks."""

    results: tuple[ShapedArray, ...]
    effects: Any
    calls_python: bool


def traced_call(operator: "JaxOperator", call: OperatorCall, operands: tuple[ShapedArray, ...]) -> TracedCall:
    """Trace the function of a call for operands of these types, memoized. Shardings in the types are kept."""
    return _traced(operator, call, operands, trace_context())


@lru_cache(1024)
def _traced(operator: "JaxOperator", call: OperatorCall, operands: tuple[ShapedArray, ...], _: Any) -> TracedCall:
    given = [jax.ShapeDtypeStruct(operand.shape, operand.dtype, sharding=operand.sharding) for operand in operands]
    jaxpr = jax.make_jaxpr(operator.function(call))(*given)
    results = tuple(aval.update(weak_type=False) for aval in jaxpr.out_avals)
    calls_python = any(equation.primitive.name in _CALLBACKS for equation in equations_of(jaxpr))
    return TracedCall(results, jaxpr.effects, calls_python)
