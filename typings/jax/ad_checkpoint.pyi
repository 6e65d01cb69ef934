from typing import Any, TypeVar

_T = TypeVar("_T")

def checkpoint_name(x: _T, name: str) -> _T: ...

checkpoint_policies: Any
