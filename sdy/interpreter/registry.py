"""Operations of other dialects, and what they compute: the one place where whoever brings them says so.

@register("smooth.mix")
def mix(op: MixOp, x: np.ndarray, gate: np.ndarray) -> np.ndarray:
    return x * gate
"""

from collections.abc import Callable
from typing import Any, TypeVar

Meaning = Callable[..., Any]
"""(operation, the value of each operand) -> the value of its only result, or a tuple of those of several.

Tensors are NumPy arrays, of the shapes that one device has where the program is partitioned. A result need not have the
element type of its type, which it is converted to.
"""

MeaningT = TypeVar("MeaningT", bound=Meaning)

_meanings: dict[str, Meaning] = {}


def register(*names: str) -> Callable[[MeaningT], MeaningT]:
    """A decorator that makes a function what the operations called `names` compute.

    Raises:
        ValueError: what operations of one of these names compute is known already.
    """

    def add(function: MeaningT) -> MeaningT:
        for name in names:
            if name in _meanings:
                raise ValueError(f"what operations called '{name}' compute is known already")
            _meanings[name] = function
        return function

    return add


def meaning_of(name: str) -> Meaning | None:
    """What operations called `name` compute, where that was registered."""
    return _meanings.get(name)
