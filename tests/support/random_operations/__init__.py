"""Random programs of one operation each, from all families of StableHLO and CHLO, often with odd shapes.

A family is a function that takes a random generator and returns the text of a function around one operation.
"""

from random import Random

from random_operations import (
    chlo,
    collectives,
    contractions,
    dynamic_shapes,
    elementwise,
    indexing,
    linear_algebra,
    shapes,
)
from random_operations.text import FAMILIES, tensor

__all__ = [
    "FAMILIES",
    "chlo",
    "collectives",
    "contractions",
    "dynamic_shapes",
    "elementwise",
    "indexing",
    "linear_algebra",
    "programs",
    "shapes",
    "tensor",
]


def programs(count: int, seed: int) -> str:
    """Return a module of `count` functions, from all families in turn."""
    rng = Random(seed)
    families = list(FAMILIES.items())
    functions: list[str] = []
    for index in range(count):
        name, family = families[index % len(families)]
        functions.append(family(rng).replace("@NAME", f"@{name}_{index}"))
    return "\n".join(functions)
