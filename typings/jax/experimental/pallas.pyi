from collections.abc import Callable, Sequence
from typing import Any

class BlockSpec:
    def __init__(
        self, block_shape: Sequence[int | None] | None = ..., index_map: Callable[..., tuple[Any, ...]] | None = ...
    ) -> None: ...

def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid: tuple[int, ...] = ...,
    in_specs: Any = ...,
    out_specs: Any = ...,
    interpret: Any = ...,
) -> Callable[..., Any]: ...
