"""The registry of the semantics of operations of other dialects.

@register("smooth.mix")
def mix(op: MixOp, x: np.ndarray, gate: np.ndarray) -> np.ndarray:
    return x * gate
"""

from collections.abc import Callable
from typing import Any, TypeVar

Semantics = Callable[..., Any]
"""A function (operation, operand values...) -> the value of the only result, or a tuple of the values of several.

Tensors are NumPy arrays; in a partitioned program, they have the shapes of shards. Results are converted to the element
types of their types.
"""

SemanticsT = TypeVar("SemanticsT", bound=Semantics)

_semantics: dict[str, Semantics] = {}


def register(*names: str) -> Callable[[SemanticsT], SemanticsT]:
    """Decorate a function that computes the results of the operations `names`.

    Raises:
        ValueError: An operation has registered semantics already.
    """

    def add(function: SemanticsT) -> SemanticsT:
        for name in names:
            if name in _semantics:
                raise ValueError(f"the semantics of '{name}' are registered already")
            _semantics[name] = function
        return function

    return add


def semantics_of(name: str) -> Semantics | None:
    """Return the registered semantics of the operation `name`; None if there are none."""
    return _semantics.get(name)
