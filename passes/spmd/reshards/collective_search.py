"""A* search for the sequence of collectives that receives the fewest elements.

The nodes of the graph are layouts: for each dimension, the pieces of axes that split it, major to minor. The edges are
collectives, weighted by the elements that all devices receive; between source and target, only even layouts are nodes.
The heuristic is the number of elements that devices need and do not hold. No sequence of collectives receives fewer,
so the search expands no layout twice.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import chain, combinations, permutations

import numpy as np

from sdy.box import Ints
from sdy.passes.spmd.layout import round_up
from sdy.passes.spmd.reshards.collective_cost import elements_in_exchange

Layout = tuple[tuple[int, ...], ...]
"""For each dimension, the pieces that split it, as indices into the sizes of all pieces."""

_MOST_EXPANSIONS = 300


@lru_cache(2**12)
def cheapest_path(
    source: Layout, target: Layout, shape: tuple[int, ...], sizes: tuple[int, ...], limit: int
) -> tuple[Layout, ...] | None:
    """Find the layouts on the way from `source` to `target` on which devices receive fewer than `limit` elements.

    Args:
        source: The first layout of the path.
        target: The last layout of the path.
        shape: The sizes of the dimensions in elements.
        sizes: The sizes of the pieces. There is one device for each element of a grid of this shape.
        limit: The number of elements that all devices together receive on the best path known.

    Returns:
        The path on which devices receive the fewest elements, of equal ones one with the fewest exchanges, or None if
        no path is below `limit`.
    """
    graph = _Graph(shape, _grid(sizes), target)
    best = {source: (0, 0)}
    previous: dict[Layout, Layout] = {}
    queue = [(graph.missing(source), 0, source)]
    expanded: set[Layout] = set()
    while queue and len(expanded) < _MOST_EXPANSIONS:
        _, exchanges, layout = heapq.heappop(queue)
        if layout == target:
            return tuple(_path(layout, previous))
        if layout in expanded:
            continue
        expanded.add(layout)
        received = best[layout][0]
        for after, cost in graph.edges(layout):
            total = received + cost, exchanges + (cost > 0)
            bound = total[0] + graph.missing(after)
            if bound < limit and (after not in best or total < best[after]):
                best[after] = total
                previous[after] = layout
                heapq.heappush(queue, (bound, total[1], after))
    return None


def _path(end: Layout, previous: dict[Layout, Layout]) -> list[Layout]:
    path = [end]
    while path[-1] in previous:
        path.append(previous[path[-1]])
    return path[::-1]


class _Grid:
    """The devices over which pieces of these sizes split tensors, one for each index into a grid of that shape."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.devices = math.prod(sizes)
        self._digits = np.indices(sizes).reshape(len(sizes), -1)
        self._indices: dict[tuple[int, ...], Ints] = {}
        self._parts: dict[tuple[int, ...], int] = {}
        self._layouts: dict[tuple[int, ...], list[Layout]] = {}

    def index(self, pieces: tuple[int, ...]) -> Ints:
        """For each device, its index along `pieces`."""
        if (known := self._indices.get(pieces)) is None:
            known = np.zeros(self.devices, np.int64)
            for piece in pieces:
                known = known * self.sizes[piece] + self._digits[piece]
            self._indices[pieces] = known
        return known

    def place(self, layout: Layout) -> Ints:
        """For each device, its index along the pieces of `layout` and then along all others."""
        return self.index((*chain(*layout), *self.free(layout)))

    def parts(self, pieces: tuple[int, ...]) -> int:
        """The number of parts of a dimension that `pieces` split."""
        if (known := self._parts.get(pieces)) is None:
            known = self._parts[pieces] = math.prod(self.sizes[piece] for piece in pieces)
        return known

    def free(self, layout: Layout) -> list[int]:
        """The pieces that split no dimension."""
        held = {*chain(*layout)}
        return [piece for piece in range(len(self.sizes)) if piece not in held]

    def layouts(self, parts: tuple[int, ...]) -> list[Layout]:
        """The layouts that split each dimension into this many parts."""
        if (known := self._layouts.get(parts)) is None:
            known = self._layouts[parts] = list(self._layouts_of(parts, range(len(self.sizes))))
        return known

    def _layouts_of(self, parts: Sequence[int], pieces: Sequence[int]) -> Iterator[Layout]:
        if not parts:
            yield ()
            return
        for count in range(len(pieces) + 1):
            for first in permutations(pieces, count):
                if self.parts(first) == parts[0]:
                    left = [piece for piece in pieces if piece not in first]
                    for others in self._layouts_of(parts[1:], left):
                        yield first, *others


_grid = lru_cache(2**6)(_Grid)


class _Graph:
    """The layouts of a tensor over a grid, and what the collectives between them send."""

    def __init__(self, shape: Sequence[int], grid: _Grid, target: Layout) -> None:
        self.shape, self.grid, self.target = shape, grid, target
        self._overlaps: dict[tuple[int, tuple[int, ...]], Ints] = {}
        self._missing: dict[Layout, int] = {}
        self._needed = int(self._held(target).sum())

    def edges(self, layout: Layout) -> Iterator[tuple[Layout, int]]:
        """Each layout that one collective leads to, and the elements that all devices receive in it."""
        local, devices = self._local(layout), self.grid.devices
        place = self.grid.place(layout)

        def is_next(after: Layout) -> bool:
            return self._is_node(after) and self._keeps_padding(layout, after)

        for after in filter(is_next, self._sliced(layout)):
            yield after, 0
        for after in filter(is_next, self._gathered(layout)):
            yield after, local * (self._parts(layout) // self._parts(after) - 1) * devices
        for after, parts in self._exchanged(layout):
            if is_next(after):
                counts = (tuple(map(self.grid.parts, side)) for side in (layout, after))
                yield after, elements_in_exchange(self.shape, *counts) * (devices - devices // parts)
        for after in filter(is_next, self.grid.layouts(tuple(map(self.grid.parts, layout)))):
            yield after, local * int(np.count_nonzero(place != self.grid.place(after)))

    def missing(self, layout: Layout) -> int:
        """The elements that devices need for the target and do not hold, summed over the devices."""
        if (known := self._missing.get(layout)) is None:
            known = self._missing[layout] = self._needed - int(self._held(layout).sum())
        return known

    def _held(self, layout: Layout) -> Ints:
        """For each device, how many elements of its part of the target it holds."""
        overlaps = [self._overlap(dim, pieces) for dim, pieces in enumerate(layout)]
        return reduce(np.multiply, overlaps)

    def _overlap(self, dim: int, pieces: tuple[int, ...]) -> Ints:
        """For each device, how many rows of its part of a dimension of the target it has if `pieces` split this."""
        if (known := self._overlaps.get((dim, pieces))) is None:
            (start, end), (other_start, other_end) = (self._rows(dim, each) for each in (pieces, self.target[dim]))
            rows = np.minimum(end, other_end) - np.maximum(start, other_start)
            known = self._overlaps[dim, pieces] = np.maximum(rows, 0)
        return known

    def _rows(self, dim: int, pieces: tuple[int, ...]) -> tuple[Ints, Ints]:
        """For each device, where its part of a dimension that `pieces` split starts and ends."""
        size = self.shape[dim]
        length = -(-size // self.grid.parts(pieces))
        start = np.minimum(self.grid.index(pieces) * length, size)
        return start, np.minimum(start + length, size)

    def _local(self, layout: Layout) -> int:
        """The elements of a part, padding included."""
        return math.prod(-(-size // self.grid.parts(pieces)) for size, pieces in zip(self.shape, layout, strict=True))

    def _is_node(self, layout: Layout) -> bool:
        if layout == self.target:
            return True
        return not any(size % self.grid.parts(pieces) for size, pieces in zip(self.shape, layout, strict=True))

    def _keeps_padding(self, before: Layout, after: Layout) -> bool:
        """Whether no dimension is split on both sides and padded to another size: its rows would have to move again."""
        return all(
            not (old and new) or round_up(size, self.grid.parts(old)) == round_up(size, self.grid.parts(new))
            for size, old, new in zip(self.shape, before, after, strict=True)
        )

    def _parts(self, layout: Layout) -> int:
        return math.prod(map(self.grid.parts, layout))

    def _sliced(self, layout: Layout) -> Iterator[Layout]:
        free = self.grid.free(layout)
        for dim, pieces in enumerate(layout):
            for piece in free:
                yield _with(layout, {dim: (*pieces, piece)})

    def _gathered(self, layout: Layout) -> Iterator[Layout]:
        for dim, pieces in enumerate(layout):
            if pieces:
                yield _with(layout, {dim: pieces[:-1]})

    def _exchanged(self, layout: Layout) -> Iterator[tuple[Layout, int]]:
        """The layouts behind all-to-alls, and how many devices exchange parts.

        One moves pieces from a dimension to another, or does so for several pairs of dimensions, all different.
        """
        moves = [
            (dim, start, to)
            for dim, pieces in enumerate(layout)
            for start in range(len(pieces))
            for to in range(len(layout))
            if to != dim
        ]
        groups = [[move] for move in moves]
        for (dim, start, to), (other, other_start, other_to) in combinations(moves, 2):
            if len({dim, to, other, other_to}) == 4:
                groups.append([(dim, start, to), (other, other_start, other_to)])
        for group in groups:
            moved = {dim: layout[dim][start:] for dim, start, _ in group}
            changed = {dim: layout[dim][:start] for dim, start, _ in group}
            changed |= {to: (*layout[to], *moved[dim]) for dim, _, to in group}
            yield _with(layout, changed), math.prod(map(self.grid.parts, moved.values()))


def _with(layout: Layout, dims: dict[int, tuple[int, ...]]) -> Layout:
    return tuple(dims.get(dim, pieces) for dim, pieces in enumerate(layout))
