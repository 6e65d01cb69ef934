"""Phrases shared by the messages of lint rules: shardings, axes and JAX partition specs."""

from collections.abc import Sequence

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import format_dims
from sdy.passes.account.collectives import Collective
from sdy.passes.common.loops import loop_trips, loops_around
from sdy.sharding import TensorSharding


def from_to(before: TensorSharding | None, after: TensorSharding | None) -> str:
    """Format a reshard as `from [{"x"}, {}] to replicated`; as `to replicated` if it is computed in parts."""
    return f"to {format_dims(after)}" if before == after else f"from {format_dims(before)} to {format_dims(after)}"


def sharded_as(sharding: TensorSharding | None) -> str:
    """Format a sharding as `sharded as [{"x"}, {}]`, or as `replicated`."""
    dims = format_dims(sharding)
    return f"sharded as {dims}" if dims.startswith("[") else dims


def moves(before: TensorSharding | None, after: TensorSharding | None) -> bool:
    """Return whether an axis moves from one dimension to another."""
    return any(
        mine.overlaps(theirs)
        for own, dim in enumerate(before.dims if before else ())
        for mine in dim.axes
        for other, others in enumerate(after.dims if after else ())
        for theirs in others.axes
        if own != other
    )


def spec(dims: Sequence[Sequence[AxisRef]]) -> str:
    """Format a JAX partition spec such as `P("data", None)`; sub-axes are formatted as in MLIR."""
    return f"P({', '.join(map(_entry, dims))})"


def _entry(axes: Sequence[AxisRef]) -> str:
    names = [str(axis) for axis in axes]
    return "None" if not names else names[0] if len(names) == 1 else f"({', '.join(names)})"


def spec_of(sharding: TensorSharding | None) -> str:
    """Format the JAX partition spec of a sharding."""
    return spec(sharding.dim_axes) if sharding else "P()"


def in_iterations(collective: Collective) -> str:
    """Format how often a collective in a loop runs."""
    if any(loop_trips(loop) is None for loop in loops_around(collective.op)):
        return "in each iteration of a loop with an unknown number of iterations (one is counted)"
    return f"in each of {collective.times:,} iterations"


def quoted_axes(names: Sequence[str]) -> str:
    """Format axes as `axis "x"` or `axes "x" and "y"`."""
    return ("axis " if len(names) == 1 else "axes ") + " and ".join(str(AxisRef(name)) for name in names)
