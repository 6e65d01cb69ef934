"""The function of a call of an operator, as jax traces it: result types, effects, and callbacks into Python.

A callback is one of a list that jax makes for each program that it lowers, and the functions that devices run on their
parts are programs of their own. So the operations of a function that calls Python become a part of the program around
it, and Python sees whole arrays, once, as it does outside of an operator.
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
"""The primitives of jax that call Python when the compiled program runs, or while XLA compiles it."""


class TracedCall(NamedTuple):
    """The result types of a call, the effects of its function, and whether that calls Python."""

    results: tuple[ShapedArray, ...]
    effects: Any
    calls_python: bool


def traced_call(operator: "JaxOperator", call: OperatorCall, operands: tuple[ShapedArray, ...]) -> TracedCall:
    """Trace the function of a call for operands of these types. Shardings are kept where they are part of types."""
    return _traced(operator, call, operands, trace_context())


@lru_cache(1024)
def _traced(operator: "JaxOperator", call: OperatorCall, operands: tuple[ShapedArray, ...], _: Any) -> TracedCall:
    given = [jax.ShapeDtypeStruct(operand.shape, operand.dtype, sharding=operand.sharding) for operand in operands]
    jaxpr = jax.make_jaxpr(operator.function(call))(*given)
    results = tuple(aval.update(weak_type=False) for aval in jaxpr.out_avals)
    calls_python = any(equation.primitive.name in _CALLBACKS for equation in equations_of(jaxpr))
    return TracedCall(results, jaxpr.effects, calls_python)
