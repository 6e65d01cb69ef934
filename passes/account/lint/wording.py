"""Words that rules have in common: tensors, layouts, and how a person writes them in Python."""

from collections.abc import Sequence

from sdy.axes import AxisRef
from sdy.passes.common.shown_sharding import dims_of
from sdy.sharding import TensorSharding


def from_to(before: TensorSharding | None, after: TensorSharding | None) -> str:
    """How a tensor lies, and how it is to lie."""
    return f"from {dims_of(before)} to {dims_of(after)}"


def moves(before: TensorSharding | None, after: TensorSharding | None) -> bool:
    """Whether an axis goes from one dimension to another."""
    return any(
        mine.overlaps(theirs)
        for own, dim in enumerate(before.dims if before else ())
        for mine in dim.axes
        for other, others in enumerate(after.dims if after else ())
        for theirs in others.axes
        if own != other
    )


def spec(dims: Sequence[Sequence[AxisRef]]) -> str:
    """A partition spec of jax, `P("data", None)`; of a part of an axis, as MLIR writes it."""
    return f"P({', '.join(map(_entry, dims))})"


def _entry(axes: Sequence[AxisRef]) -> str:
    names = [str(axis) for axis in axes]
    return "None" if not names else names[0] if len(names) == 1 else f"({', '.join(names)})"


def spec_of(sharding: TensorSharding | None) -> str:
    """The partition spec of a sharding."""
    return spec(sharding.dim_axes) if sharding else "P()"


def quoted_axes(names: Sequence[str]) -> str:
    """`axis "x"`, or `axes "x" and "y"`."""
    return ("axis " if len(names) == 1 else "axes ") + " and ".join(str(AxisRef(name)) for name in names)
