from typing import Any

from jax.sharding import Sharding

from sdy.type_helpers import Function

def io_callback(
    callback: Function[Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Sharding | None = ...,
    ordered: bool = ...,
    **kwargs: Any,
) -> Any: ...
