from typing import Any

from jax.extend.core import Primitive

from sdy.callables import Function

def deflinear2(primitive: Primitive, transpose_rule: Function[Any]) -> None: ...
