from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from jax._src.basearray import Array, DTypeLike

class ShapedArray:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    sharding: Any
    def __init__(
        self, shape: Sequence[int], dtype: DTypeLike, weak_type: bool = ..., *, sharding: Any = ...
    ) -> None: ...
    def update(self, **kwargs: Any) -> ShapedArray: ...

class Tracer(Array):
    aval: Any

def eval_context() -> AbstractContextManager[None]: ...
