from collections.abc import Callable
from typing import Any

from jax.extend.core import Primitive

primitive_batchers: dict[Primitive, Callable[..., Any]]

def defvectorized(prim: Primitive) -> None: ...
