"""State of a training step: the arguments, such as parameters and optimizer state, whose next values it returns."""

from collections import defaultdict, deque
from collections.abc import Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.ir.shapes import shape

_FEWEST = 2
"""Minimum number of state arguments; a single result can have the type of an argument by coincidence."""


def find_state(main: FuncOp) -> Mapping[int, int]:
    """Return the state arguments of `main`, as a map from argument index to the result index of the next value.

    Arguments and results are matched by type, as JAX matches donated arguments: the first result of a type is the next
    value of the first argument of that type, and so on. Scalars are ignored.
    """
    results: dict[Attribute, deque[int]] = defaultdict(deque)
    for index, type_ in enumerate(main.function_type.outputs):
        if shape(type_):
            results[type_].append(index)
    state = {
        index: results[type_].popleft() for index, type_ in enumerate(main.function_type.inputs) if results.get(type_)
    }
    return state if len(state) >= _FEWEST else {}
