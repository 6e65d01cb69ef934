"""Shardings in few words, for people."""

from sdy.dialect.axis_syntax import axes_text
from sdy.sharding import TensorSharding


def dims_of(sharding: TensorSharding | None) -> str:
    """The axes of each dimension, as MLIR writes them."""
    if sharding is None or sharding.is_fully_replicated:
        return "replicated"
    return f"[{', '.join(axes_text(dim.axes) for dim in sharding.dims)}]"
