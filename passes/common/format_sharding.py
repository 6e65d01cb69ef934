"""Short text of shardings for reports."""

from sdy.dialect.axis_syntax import axes_text
from sdy.sharding import TensorSharding


def format_dims(sharding: TensorSharding | None) -> str:
    """Format the axes of each dimension, or "replicated"."""
    if sharding is None or sharding.is_fully_replicated:
        return "replicated"
    return f"[{', '.join(axes_text(dim.axes) for dim in sharding.dims)}]"
