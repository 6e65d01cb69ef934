from collections.abc import Callable
from typing import Any

from jax.extend.core import Primitive

from sdy.type_helpers import Function

primitive_jvps: dict[Primitive, Callable[..., Any]]
primitive_transposes: dict[Primitive, Callable[..., Any]]

class Zero:
    def __init__(self, aval: Any) -> None: ...

def is_undefined_primal(x: Any) -> bool: ...
def deflinear2(primitive: Primitive, transpose_rule: Function[Any]) -> None: ...
