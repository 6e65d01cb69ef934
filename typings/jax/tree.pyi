from collections.abc import Callable
from typing import Any

from jax.tree_util import PyTreeDef

from sdy.type_helpers import Function

def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> list[Any]: ...
def map(f: Function[Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = ...) -> Any: ...
def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> PyTreeDef: ...
