"""Small meshes, and all splits of a tensor over them, with sub-axes."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations

from sdy.axes import AxisRef, merge_sub_axes
from sdy.mesh import Mesh

MESHES = {
    "2": Mesh.of({"x": 2}),
    "3": Mesh.of({"x": 3}),
    "6": Mesh.of({"x": 6}),
    "2x3": Mesh.of({"x": 2, "y": 3}),
    "2x4": Mesh.of({"x": 2, "y": 4}),
    "2x2x2": Mesh.of({"x": 2, "y": 2, "z": 2}),
}

Split = tuple[tuple[AxisRef, ...], ...]
"""The axes that shard each dimension."""


@cache
def splits(mesh: Mesh, rank: int) -> tuple[Split, ...]:
    """Return every split of a tensor of this rank over some of the axes of `mesh`."""
    return tuple(split for axes in _sequences(mesh) for split in _dealt(axes, rank, mesh))


def _sequences(mesh: Mesh) -> Iterator[tuple[AxisRef, ...]]:
    """Yield all sequences of axes and sub-axes that one sharding may contain."""
    pieces = [piece for name, size in mesh.axes for piece in _pieces(name, size)]
    for count in range(len(pieces) + 1):
        for chosen in combinations(pieces, count):
            if not any(one.conflicts_with(other) for one, other in combinations(chosen, 2)):
                yield from permutations(chosen)


def _pieces(name: str, size: int) -> Iterator[AxisRef]:
    yield AxisRef(name)
    divisors = [divisor for divisor in range(1, size + 1) if size % divisor == 0]
    for start in divisors:
        for end in divisors:
            if end > start and end % start == 0 and (start, end) != (1, size):
                yield AxisRef(name, start, end // start)


def _dealt(axes: tuple[AxisRef, ...], rank: int, mesh: Mesh) -> Iterator[Split]:
    """Yield every distribution of the ordered axes over the dimensions without adjacent axes that merge into one."""
    if rank == 0:
        if not axes:
            yield ()
        return
    for count in range(len(axes) + 1):
        first = axes[:count]
        if merge_sub_axes(first, mesh) == first:
            yield from ((first, *rest) for rest in _dealt(axes[count:], rank - 1, mesh))
