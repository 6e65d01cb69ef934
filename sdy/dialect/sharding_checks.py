"""Verification of shardings and lists of axes on a mesh, with MLIR's messages.

These functions depend on values alone, return an error message or None, and are memoized: a program has few distinct
shardings.
"""

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ShapedType, TupleType, UnrankedMemRefType, UnrankedTensorType
from xdsl.ir import Attribute

from sdy.axes import AxisRef, mesh_order
from sdy.dialect.attributes import TensorShardingAttr
from sdy.dialect.axis_syntax import symbol_text
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


class AxisCheck:
    """Checks lists of axes in sequence; an axis may occur only once in all lists together."""

    def __init__(self, mesh: Mesh):
        self._mesh = mesh
        self._seen: set[AxisRef] = set()

    def problem(self, axes: Sequence[AxisRef]) -> str | None:
        """Return the error message of the next list; overlapping sub-axes are left to `sub_axes_problem`."""
        previous: AxisRef | None = None
        for axis in axes:
            if axis.name not in self._mesh:
                return f'unknown axis name: "{axis.name}"'
            if axis in self._seen:
                return f"duplicate axis ref: {axis}"
            self._seen.add(axis)
            if not axis.is_full and previous is not None and previous.can_merge(axis):
                return f"two consecutive sub-axes can be merged: {previous}, {axis}"
            previous = axis
        return None

    def ordered_problem(self, axes: Sequence[AxisRef], name: str) -> str | None:
        """Check a list called `name` like `problem`; its axes must also be in mesh order."""
        known = [axis for axis in axes if axis.name in self._mesh]
        if len(known) == len(axes) and known != sorted(known, key=mesh_order(self._mesh)):
            return f"{name} axes are not ordered w.r.t. mesh"
        return self.problem(axes)

    def sub_axes_problem(self) -> str | None:
        """Return the error message for the sub-axes of all lists together."""
        for name, size in self._mesh.axes:
            sub_axes = [axis for axis in self._seen if axis.name == name and not axis.is_full]
            if sub_axes and AxisRef(name) in self._seen:
                return f'both sub-axis and full-axis are used for axis name: "{name}"'
            if problem := _sub_axes_problem(sorted(sub_axes, key=mesh_order(self._mesh)), size):
                return problem
        return None


def _sub_axes_problem(sub_axes: Sequence[AxisRef], axis_size: int) -> str | None:
    """Return the error message for the sub-axes, major first, of one axis."""
    previous: AxisRef | None = None
    previous_end = 1
    for axis in sub_axes:
        pre_size, size = axis.pre_size, axis.size
        assert pre_size is not None
        assert size is not None
        end = pre_size * size
        if pre_size < 1:
            return f"sub-axis pre-size must be at least 1: {axis}"
        if size <= 1:
            return f"sub-axis sizes must be greater than 1: {axis}"
        if axis_size % end:
            return f"sub-axis next pre-size {end} doesn't divide the size of the full axis {axis_size}: {axis}"
        if size == axis_size:
            return f"sub-axis size is equal to the full axis size: {axis}"
        if previous_end > pre_size:
            return f"overlapping sub-axes: {previous}, {axis}"
        previous, previous_end = axis, end
    return None


@lru_cache(maxsize=4096)
def sharding_problem(
    sharding: TensorSharding, type_: Attribute | None, mesh: Mesh | None, divisible: bool = False
) -> str | None:
    """Return the error message of a sharding that is invalid for a type; None for a valid one.

    Args:
        sharding: The sharding to verify.
        type_: The type of the value; None for the sharding of an operation without results.
        mesh: The mesh of the sharding; None if its symbol is unknown.
        divisible: Whether the axes of each dimension must divide its size.
    """
    if mesh is None:
        assert isinstance(sharding.mesh, str)
        return f"unknown mesh: {symbol_text(sharding.mesh)}"
    is_bare = not (sharding.dims or sharding.replicated or sharding.unreduced)
    if mesh.is_maximal or type_ is None:
        if not is_bare:
            return "a maximal sharding can only have a sharding with rank 0 and no replicated or unreduced axes."
        return None
    if isinstance(type_, TupleType):
        if len(type_.types) != 1:
            return f"ops can only have a sharding for a tuple of size 1: '{type_}'"
        (type_,) = type_.types
    if isinstance(type_, UnrankedTensorType | UnrankedMemRefType):
        return f"only ranked tensors can have a sharding. type: '{type_}'"
    if not isinstance(type_, ShapedType):
        if not is_bare:
            return (
                "non-shaped tensors can only have a sharding with rank 0 and no replicated or unreduced axes. "
                f"type: '{type_}', sharding: {TensorShardingAttr(sharding)}"
            )
        return None
    return _tensor_problem(sharding, type_.get_shape(), mesh, divisible)


def _tensor_problem(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh, divisible: bool) -> str | None:
    if sharding.rank != len(shape):
        return f"sharding doesn't match tensor rank: {sharding.rank} != {len(shape)}"
    check = AxisCheck(mesh)
    for index, (dim, size) in enumerate(zip(sharding.dims, shape, strict=True)):
        if dim.priority is not None and dim.is_closed and not dim.axes:
            return f"dim {index} is empty and closed but has a priority"
        if problem := check.problem(dim.axes):
            return problem
        if divisible and size >= 0 and size % (parts := dim.sharded_size(mesh)):
            return f"dim {index} with size {size} is not divisible by its sharded size {parts}"
    return (
        check.ordered_problem(sharding.replicated, "replicated")
        or check.ordered_problem(sharding.unreduced, "unreduced")
        or check.sub_axes_problem()
    )
