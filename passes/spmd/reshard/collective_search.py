"""A* search for the sequence of collectives that receives the fewest elements.

The nodes of the graph are layouts: for each dimension, the sub-axes ("pieces") that split it, major to minor. The edges
are collectives, weighted by the elements that all devices receive. In all nodes between source and target, each
dimension is even, or has as many shards as in one of these two.
The heuristic is the number of elements of the target shards that devices do not hold yet. It is a lower bound on what
any sequence of collectives receives, and consistent, so the search expands no layout twice.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import chain, combinations, permutations, product

import numpy as np

from sdy.box import Ints
from sdy.passes.spmd.reshard.resize_cost import received_in_gather, received_in_slice, resizes_around
from sdy.passes.spmd.shards.layout import round_up

Layout = tuple[tuple[int, ...], ...]
"""For each dimension, the pieces that split it, as indices into the list of piece sizes."""

_MOST_EXPANSIONS = 300


@lru_cache(2**12)
def cheapest_path(
    source: Layout, target: Layout, shape: tuple[int, ...], sizes: tuple[int, ...], limit: int
) -> tuple[Layout, ...] | None:
    """Find the cheapest path of layouts from `source` to `target` that receives fewer than `limit` elements.

    Args:
        source: The first layout of the path.
        target: The last layout of the path.
        shape: The sizes of the dimensions in elements.
        sizes: The sizes of the pieces, which are also the shape of the grid of devices.
        limit: The number of elements that all devices together receive on the best path known.

    Returns:
        The path that receives the fewest elements, ties broken by the number of collectives that communicate, or None
        if no path is below `limit`.
    """
    graph = _Graph(shape, _grid(sizes), source, target)
    if graph.missing(source) >= limit:
        return None
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
        before = previous.get(layout)
        # Gathers in a row become one, of padded parts: it would cost more than the sum of theirs.
        is_gathered = before is not None and _begins(layout, before)
        for after, cost in graph.edges(layout):
            if is_gathered and _begins(after, layout):
                continue
            total = received + cost, exchanges + (cost > 0)
            if after in best and total >= best[after]:
                continue
            bound = total[0] + graph.missing(after)
            if bound < limit:
                best[after] = total
                previous[after] = layout
                heapq.heappush(queue, (bound, total[1], after))
    return None


def least_received(source: Layout, target: Layout, shape: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """Return a lower bound of the elements that all devices receive on any path from `source` to `target`.

    The arguments are those of `cheapest_path`.
    """
    return _Graph(shape, _grid(sizes), source, target).missing(source)


def _path(end: Layout, previous: dict[Layout, Layout]) -> list[Layout]:
    path = [end]
    while path[-1] in previous:
        path.append(previous[path[-1]])
    return path[::-1]


class _Grid:
    """The grid of devices, with one dimension for each piece; memoizes the indices of devices along pieces."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.devices = math.prod(sizes)
        self._digits = np.indices(sizes).reshape(len(sizes), -1)
        self._indices: dict[tuple[int, ...], Ints] = {}
        self._parts: dict[tuple[int, ...], int] = {}
        self._layouts: dict[tuple[int, ...], list[Layout]] = {}

    def index(self, pieces: tuple[int, ...]) -> Ints:
        """Return the index of each device along `pieces`, major to minor."""
        if (known := self._indices.get(pieces)) is None:
            known = np.zeros(self.devices, np.int64)
            for piece in pieces:
                known = known * self.sizes[piece] + self._digits[piece]
            self._indices[pieces] = known
        return known

    def place(self, layout: Layout) -> Ints:
        """Return the index of each device along the pieces of `layout`, followed by all other pieces."""
        return self.index((*chain(*layout), *self.free(layout)))

    def parts(self, pieces: tuple[int, ...]) -> int:
        """Return the number of shards of a dimension that `pieces` split."""
        if (known := self._parts.get(pieces)) is None:
            known = self._parts[pieces] = math.prod(self.sizes[piece] for piece in pieces)
        return known

    def free(self, layout: Layout) -> list[int]:
        """Return the pieces that split no dimension of `layout`."""
        held = {*chain(*layout)}
        return [piece for piece in range(len(self.sizes)) if piece not in held]

    def layouts(self, parts: tuple[int, ...]) -> list[Layout]:
        """Return all layouts that split dimension i into `parts[i]` shards."""
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
    """The graph of layouts of a tensor over a grid, with collectives as weighted edges."""

    def __init__(self, shape: tuple[int, ...], grid: _Grid, source: Layout, target: Layout) -> None:
        self.shape, self.grid, self.target = shape, grid, target
        self._parts_at_ends = [
            {grid.parts(first), grid.parts(last)} for first, last in zip(source, target, strict=True)
        ]
        self._overlaps: dict[tuple[int, tuple[int, ...]], Ints] = {}
        self._missing: dict[Layout, int] = {}
        self._nodes: dict[Layout, bool] = {}
        self._needed = int(self._held(target).sum())

    def edges(self, layout: Layout) -> Iterator[tuple[Layout, int]]:
        """Yield each layout that one collective produces, and the elements that all devices receive in it."""
        devices, parts = self.grid.devices, self._parts(layout)

        def is_next(after: Layout) -> bool:
            return self._is_node(after) and self._resizes_to_end(layout, after)

        for after in filter(is_next, self._sliced(layout)):
            yield after, received_in_slice(self.shape, parts, self._parts(after), devices)
        for after in filter(is_next, self._gathered(layout)):
            yield after, received_in_gather(self.shape, parts, self._parts(after), devices)
        for after, groups in self._exchanged(layout):
            if is_next(after):
                resized, local = resizes_around(self.shape, parts, self._parts(after), devices)
                yield after, resized + local * (devices - devices // groups)
        local, place = resizes_around(self.shape, parts, parts, devices).local, self.grid.place(layout)
        for after in filter(self._is_node, self.grid.layouts(parts)):
            yield after, local * int(np.count_nonzero(place != self.grid.place(after)))

    def missing(self, layout: Layout) -> int:
        """Return the number of elements of target shards that devices do not hold, summed over the devices."""
        if (known := self._missing.get(layout)) is None:
            known = self._missing[layout] = self._needed - int(self._held(layout).sum())
        return known

    def _held(self, layout: Layout) -> Ints:
        """Return the number of elements of its target shard that each device holds."""
        overlaps = [self._overlap(dim, pieces) for dim, pieces in enumerate(layout)]
        return reduce(np.multiply, overlaps)

    def _overlap(self, dim: int, pieces: tuple[int, ...]) -> Ints:
        """Return the overlap in rows of each device's current and target shard of a dimension that `pieces` split."""
        if (known := self._overlaps.get((dim, pieces))) is None:
            (start, end), (other_start, other_end) = (self._rows(dim, each) for each in (pieces, self.target[dim]))
            rows = np.minimum(end, other_end) - np.maximum(start, other_start)
            known = self._overlaps[dim, pieces] = np.maximum(rows, 0)
        return known

    def _rows(self, dim: int, pieces: tuple[int, ...]) -> tuple[Ints, Ints]:
        """Return the first row, and the end, of each device's shard of a dimension that `pieces` split."""
        size = self.shape[dim]
        length = -(-size // self.grid.parts(pieces))
        start = np.minimum(self.grid.index(pieces) * length, size)
        return start, np.minimum(start + length, size)

    def _is_node(self, layout: Layout) -> bool:
        """Return whether each dimension is even, or has as many shards as in the source or the target."""
        if (known := self._nodes.get(layout)) is None:
            known = self._nodes[layout] = all(
                size % (parts := self.grid.parts(pieces)) == 0 or parts in ends
                for size, pieces, ends in zip(self.shape, layout, self._parts_at_ends, strict=True)
            )
        return known

    def _resizes_to_end(self, before: Layout, after: Layout) -> bool:
        """Return whether each dimension that is padded to another size goes from one end's shards to the other's.

        Otherwise its rows would be exchanged for the sake of a layout in between, by collectives that save few bytes.
        """
        return all(
            not (old and new)
            or round_up(size, self.grid.parts(old)) == round_up(size, self.grid.parts(new))
            or {self.grid.parts(old), self.grid.parts(new)} <= ends
            for size, old, new, ends in zip(self.shape, before, after, self._parts_at_ends, strict=True)
        )

    def _parts(self, layout: Layout) -> tuple[int, ...]:
        return tuple(map(self.grid.parts, layout))

    def _sliced(self, layout: Layout) -> Iterator[Layout]:
        free = self.grid.free(layout)
        for dim, pieces in enumerate(layout):
            most = 1 if self.shape[dim] % self.grid.devices == 0 else len(free)
            for count in range(1, most + 1):
                for more in permutations(free, count):
                    yield _with(layout, {dim: (*pieces, *more)})

    def _gathered(self, layout: Layout) -> Iterator[Layout]:
        kept = product(*([pieces[:end] for end in range(len(pieces) + 1)] for pieces in layout))
        yield from (after for after in kept if after != layout)

    def _exchanged(self, layout: Layout) -> Iterator[tuple[Layout, int]]:
        """Yield the layouts that an all-to-all produces, and its group size.

        An all-to-all moves a suffix of pieces from one dimension to another, or does so for two disjoint pairs.
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


def _begins(first: Layout, second: Layout) -> bool:
    """Return whether the pieces of each dimension in `first` are a prefix of those in `second`."""
    return all(longer[: len(pieces)] == pieces for pieces, longer in zip(first, second, strict=True))


def _with(layout: Layout, dims: dict[int, tuple[int, ...]]) -> Layout:
    return tuple(dims.get(dim, pieces) for dim, pieces in enumerate(layout))
