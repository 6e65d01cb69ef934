"""Traces of the function of an operator call: result types, effects, and use of Python callbacks.

jax keeps one list of callbacks for each lowered program, and the function that devices run on their shards is a program
of its own. A function with callbacks is therefore inlined into the surrounding program; its callbacks receive global
arrays, once, as they do outside of an operator.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
from jax.core import ShapedArray

from sdy.operators.call import OperatorCall
from sdy.operators.operator import Operator
from sdy.passes.jax.jax_internals import equations_of, trace_context

_CALLBACKS = frozenset(
    ("buffer_callback", "debug_callback", "debug_print", "inspect_sharding", "io_callback", "pure_callback")
)
"""The jax primitives that call Python at run time or during compilation."""


class ArrayOperator(Operator):
    """An operator with a function of jax arrays, and optionally the operator that computes its gradient."""

    backward: "ArrayOperator | None"

    @abstractmethod
    def function(self, call: OperatorCall) -> Callable[..., tuple[jax.Array, ...]]:
        """Return the function of the arrays of `call`."""

    @abstractmethod
    def gradients_of(self, call: OperatorCall, operands: Sequence[jax.Array], count: int) -> Sequence[jax.Array]:
        """Compute the `count` gradients of another operator's call, with this operator as its `backward`."""


class TracedCall(NamedTuple):
    """The result types and effects of a call; `calls_python` is true if its function has Python callbacks."""

    results: tuple[ShapedArray, ...]
    effects: Any
    calls_python: bool


def traced_call(operator: ArrayOperator, call: OperatorCall, operands: tuple[ShapedArray, ...]) -> TracedCall:
    """Trace the function of a call for operands of these types, memoized. Shardings in the types are kept."""
    return _traced(operator, call, operands, trace_context())


@lru_cache(1024)
def _traced(operator: ArrayOperator, call: OperatorCall, operands: tuple[ShapedArray, ...], _: Any) -> TracedCall:
    given = [jax.ShapeDtypeStruct(operand.shape, operand.dtype, sharding=operand.sharding) for operand in operands]
    jaxpr = jax.make_jaxpr(operator.function(call))(*given)
    results = tuple(aval.update(weak_type=False) for aval in jaxpr.out_avals)
    calls_python = any(equation.primitive.name in _CALLBACKS for equation in equations_of(jaxpr))
    return TracedCall(results, jaxpr.effects, calls_python)
