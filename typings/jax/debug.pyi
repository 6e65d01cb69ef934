from collections.abc import Callable
from typing import Any

from jax.sharding import Sharding

from sdy.type_helpers import Function

def callback(callback: Function[None], *args: Any, ordered: bool = ..., **kwargs: Any) -> None: ...
def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None: ...
def print(fmt: str, *args: Any, ordered: bool = ..., **kwargs: Any) -> None: ...
