"""Optimal plan of a reshard: split axes into prime sub-axes, search the graph of layouts, read off the collectives."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from sdy.axes import AxisRef, merge_sub_axes, mesh_order, subtract, total_size
from sdy.mesh import Mesh
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_search import cheapest_path, least_received
from sdy.passes.spmd.reshard.collective_state import CollectivePlan, prime_pieces
from sdy.passes.spmd.reshard.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    AxesPerDim,
    Collective,
    CollectivePermute,
)

_MOST_PIECES = 4
"""Limit on the number of sub-axes: the number of layouts is exponential in it."""


def is_exhaustive(source: AxesPerDim, target: AxesPerDim, mesh: Mesh) -> bool:
    """Return whether the search from `source` to `target` covers all ways to split axes into sub-axes.

    An axis of size 6 can be split into 2 x 3 or 3 x 2; the search considers only one of them.
    """
    before, after = (tuple(itertools.chain(*axes_per_dim)) for axes_per_dim in (source, target))
    pieces = [prime_pieces(axis, mesh) for axis in (*before, *subtract(after, before, mesh))]
    mixed = any(len({part.size_in(mesh) for part in parts}) > 1 for parts in pieces)
    return not mixed and sum(map(len, pieces)) <= _MOST_PIECES


def cheaper_plan(
    known: Sequence[Collective], source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh
) -> tuple[Collective, ...] | None:
    """Search for the plan that receives the fewest elements.

    Args:
        known: The best plan so far.
        source: The axes of each dimension before the reshard.
        target: The axes of each dimension after it.
        shape: The global shape of the tensor.
        mesh: The mesh of the axes.

    Returns:
        The steps of a plan that receives fewer elements than `known`, or None if the search finds none, or if the axes
        have too many prime sub-axes.
    """
    plan = CollectivePlan(source, target, shape, mesh, reorder_devices=False)
    start = [[*dim.placed, *dim.misplaced] for dim in plan.dims]
    end = [[*dim.placed, *dim.wanted] for dim in plan.dims]
    all_axes = sorted(set(itertools.chain(*start, *end)), key=mesh_order(mesh))
    if any(one.conflicts_with(other) for one, other in itertools.combinations(all_axes, 2)):
        return None
    sub_axes = {axis: prime_pieces(axis, mesh) for axis in all_axes}
    if sum(map(len, sub_axes.values())) > _MOST_PIECES:
        sub_axes = {axis: [axis] for axis in all_axes}
    pieces = list(itertools.chain(*sub_axes.values()))
    if len(pieces) > _MOST_PIECES:
        return None
    sizes = tuple(piece.size_in(mesh) for piece in pieces)
    first, last = (
        tuple(tuple(pieces.index(part) for axis in axes for part in sub_axes[axis]) for axes in axes_per_dim)
        for axes_per_dim in (start, end)
    )
    limit = elements_received(known, source, shape, mesh) * math.prod(sizes) // mesh.size
    path = cheapest_path(first, last, shape, sizes, limit)
    if path is None:
        return None
    return tuple(_steps([tuple(tuple(pieces[i] for i in dim) for dim in layout) for layout in path], mesh))


def least_elements(source: AxesPerDim, target: AxesPerDim, shape: tuple[int, ...], mesh: Mesh) -> int:
    """Return a lower bound of the elements that all devices receive in any plan: 0 if axes overlap in part."""
    first, last = (
        [[part for axis in axes for part in prime_pieces(axis, mesh)] for axes in each] for each in (source, target)
    )
    pieces = sorted(set(itertools.chain(*first, *last)), key=mesh_order(mesh))
    if not pieces or any(one.conflicts_with(other) for one, other in itertools.combinations(pieces, 2)):
        return 0
    begin, end = (tuple([tuple(map(pieces.index, parts)) for parts in each]) for each in (first, last))
    sizes = tuple([piece.size_in(mesh) for piece in pieces])
    return least_received(begin, end, shape, sizes) * mesh.size // math.prod(sizes)


def _steps(path: Sequence[AxesPerDim], mesh: Mesh) -> Iterator[Collective]:
    """Yield the collectives from each sharding of `path` to the next, with consecutive slices or gathers merged."""
    before = path[0]
    for after, following in itertools.zip_longest(path[1:], path[2:]):
        if following and (
            (_is_prefix_of(before, after) and _is_prefix_of(after, following))
            or (_is_prefix_of(after, before) and _is_prefix_of(following, after))
        ):
            continue
        yield from _collectives(before, after, mesh)
        before = after


def _collectives(before: AxesPerDim, after: AxesPerDim, mesh: Mesh) -> Iterator[Collective]:
    """Yield the collective from `before` to `after`, or the all-to-alls that canonicalization merges into one."""
    sizes, new_sizes = ([total_size(axes, mesh) for axes in each] for each in (before, after))
    removed, added = (
        [axes[len(others) :] for axes, others in zip(*each, strict=True)] for each in ((before, after), (after, before))
    )
    if sizes == new_sizes:
        yield CollectivePermute(_merged(after, mesh))
    elif _is_prefix_of(before, after):
        yield AllSlice(_merged(added, mesh), _merged(after, mesh))
    elif _is_prefix_of(after, before):
        yield AllGather(_merged(removed, mesh), _merged(after, mesh))
    else:
        current = list(before)
        for start, axes in enumerate(removed):
            if axes:
                end = next(dim for dim, others in enumerate(added) if others == axes)
                current[start], current[end] = after[start], after[end]
                yield AllToAll(merge_sub_axes(axes, mesh), start, end, _merged(current, mesh))


def _is_prefix_of(first: AxesPerDim, second: AxesPerDim) -> bool:
    """Return whether the axes of each dimension in `first` are a prefix of those in `second`."""
    return all(axes == longer[: len(axes)] for axes, longer in zip(first, second, strict=True))


def _merged(axes_per_dim: Iterable[Sequence[AxisRef]], mesh: Mesh) -> AxesPerDim:
    return tuple(merge_sub_axes(axes, mesh) for axes in axes_per_dim)
