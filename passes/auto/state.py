"""What a step gets and gives back: parameters, and what an optimizer knows of them."""

from collections import defaultdict, deque
from collections.abc import Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.ir.shapes import shape

_FEWEST = 2
"""A single result of the type of an argument need not be its next value."""


def find_state(main: FuncOp) -> Mapping[int, int]:
    """The arguments whose next value `main` gives back, and which result that is, by their index.

    Types tell, as they do where jax finds a use for donated arguments: the first result of a type is the next value of
    the first argument of that type, and so on. Scalars do not matter.
    """
    results: dict[Attribute, deque[int]] = defaultdict(deque)
    for index, type_ in enumerate(main.function_type.outputs):
        if shape(type_):
            results[type_].append(index)
    state = {
        index: results[type_].popleft() for index, type_ in enumerate(main.function_type.inputs) if results.get(type_)
    }
    return state if len(state) >= _FEWEST else {}
