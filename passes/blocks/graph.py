"""Block graph of a program: groups of fused operations partitioned into shards, and tensors partitioned into chunks.

    Source -> Tensor x (chunks) ----.
                                     BlockOp (shards) -> Tensor y (chunks) -> TensorView z -> TensorCopy -> Sink
    Source -> Tensor w (chunks) ----'

A stored tensor has chunks: shard `i` of a work writes chunk `i` of each of its results. A view has no storage: it maps
each of its elements to an element of another tensor. A copy materializes a view.

Source: Tapestry's block graph (crutcher/tapestry, BlockGraph).
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

from sdy.blocks.projection import Projection
from sdy.box import Box, Ints
from sdy.passes.blocks.arrays import Array

DType = np.dtype[np.generic]
Bools = npt.NDArray[np.bool_]


@dataclass(eq=False)
class Tensor:
    """A tensor of the program, with the name that is printed."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize


class Grid(NamedTuple):
    """Chunks as a regular grid.

    Attributes:
        chunk_shape: The shape of each chunk; the last one along a dimension may be smaller.
        numbers: The number of the chunk at each position of the grid.
    """

    chunk_shape: tuple[int, ...]
    numbers: Ints


@dataclass(eq=False)
class StoredTensor(Tensor):
    """A tensor stored in chunks, an array of boxes; a source, an argument or a constant of the program, has one chunk.

    A tensor without elements has no chunks.
    """

    chunks: Box
    is_source: bool = False

    def chunk_bytes(self, chunk: int) -> int:
        """Return the bytes of one chunk."""
        return prod(self.chunk_shape(chunk)) * self.dtype.itemsize

    def chunk_shape(self, chunk: int) -> tuple[int, ...]:
        """Return the shape of one chunk."""
        start, end = self.bounds(chunk)
        return tuple(map(int.__sub__, end, start))

    def bounds(self, chunk: int) -> tuple[list[int], list[int]]:
        """Return the start and the end of one chunk; lists of all chunks would take much memory."""
        return self.chunks.start[chunk].tolist(), self.chunks.end[chunk].tolist()

    @cached_property
    def grid(self) -> Grid | None:
        """The chunks as a regular grid; None if they are not one."""
        if not self.chunks.start.size or not self.shape:
            return None
        sizes = self.chunks.shape.max(axis=0)
        places = self.chunks.start // sizes
        if (places * sizes != self.chunks.start).any():
            return None
        if (np.minimum(self.chunks.start + sizes, self.shape) != self.chunks.end).any():
            return None
        numbers = np.full(-(-np.array(self.shape) // sizes), -1, np.int64)
        numbers[tuple(places.T)] = np.arange(len(self.chunks))
        return Grid(tuple(sizes.tolist()), numbers)

    def overlapping(self, start: Sequence[int], end: Sequence[int]) -> Sequence[int]:
        """Return the chunks that overlap a region that is not empty."""
        if len(self.chunks.start) == 1:
            return (0,)
        if self.grid is None:
            return self.chunks.shared(Box.of(start, end)).nonzero()[0].tolist()
        places = tuple(
            slice(first // size, (last - 1) // size + 1)
            for first, last, size in zip(start, end, self.grid.chunk_shape, strict=True)
        )
        found = self.grid.numbers[places].ravel().tolist()
        return found if min(found) >= 0 else [number for number in found if number >= 0]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a view: element `i` of `region` is element `projection(i)` of `source`."""

    region: Box
    source: Tensor
    projection: Projection


@dataclass(eq=False)
class TensorView(Tensor):
    """A tensor without storage, whose elements are those of other tensors: transposed, concatenated or strided."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Regions:
    """The region of one operand that each shard reads, clipped to the tensor: arrays of shape (shards, rank).

    A region that is all padding is empty: its start equals its end along a dimension.
    """

    start: Ints
    end: Ints

    def of(self, shard: int) -> tuple[list[int], list[int]]:
        """Return the start and the end of the region of a shard; lists of all shards would take much memory."""
        return self.start[shard].tolist(), self.end[shard].tolist()

    @property
    def sizes(self) -> Ints:
        """The number of elements of each region."""
        return (self.end - self.start).prod(axis=-1)


class Shard:
    """A unit of work: it reads a region of each operand, and writes chunk `number` of each result."""

    __slots__ = ("number", "work")

    def __init__(self, work: "Work", number: int):
        self.work = work
        self.number = number

    @property
    def index(self) -> Box | None:
        """The block of the index space of the work's first operation; None if it is not partitioned."""
        return None if self.work.index is None else self.work.index[self.number]

    @property
    def reads(self) -> tuple[Box | None, ...]:
        """The region of each operand; None if the shard reads only padding."""
        regions = ((each.start[self.number], each.end[self.number]) for each in self.work.reads)
        return tuple(Box(start, end) if (start < end).all() else None for start, end in regions)

    @property
    def nbytes(self) -> int:
        """The bytes of the regions read, the chunks written, and intermediate values."""
        between = self.work.intermediate_bytes if isinstance(self.work, BlockOp) else 0
        return int(self.work.shard_bytes[self.number]) + between


@dataclass(eq=False)
class Work:
    """Fused operations or a copy, partitioned into shards.

    Attributes:
        name: The name of the operation, or of all fused operations.
        operands: The tensors that shards read.
        results: The tensors that are written: one chunk of each by each shard.
        reads: The region of each operand that each shard reads.
        index: The block of each shard; None if the work is one shard.
        shards: The shards, without those that no result depends on.
    """

    name: str
    operands: tuple[Tensor, ...]
    results: tuple[StoredTensor, ...]
    reads: tuple[Regions, ...]
    index: Box | None
    shards: list[Shard] = field(default_factory=list[Shard], init=False)

    def __post_init__(self) -> None:
        self.shards += [Shard(self, number) for number in range(len(self.shard_bytes))]

    def shard(self, number: int) -> Shard:
        """Return a shard by its number."""
        return self.shards[bisect_left(self.shards, number, key=lambda shard: shard.number)]

    @cached_property
    def shard_bytes(self) -> Ints:
        """The bytes of the regions read and the chunks written by each shard, removed ones included."""
        read = [
            regions.sizes * tensor.dtype.itemsize for tensor, regions in zip(self.operands, self.reads, strict=True)
        ]
        written = [result.chunks.size * result.dtype.itemsize for result in self.results]
        return np.sum([*read, *written], axis=0)


@dataclass(frozen=True)
class ShardProgram:
    """The program of shards.

    Attributes:
        text: The module.
        is_short: Whether it takes less time, for all shards, than XLA needs to optimize it.
    """

    text: str
    is_short: bool


@dataclass(eq=False)
class BlockOp(Work):
    """Operations of the program, fused and computed in blocks.

    Attributes:
        op: The last operation, which is the location of errors.
        programs: The programs of shards.
        program_of: The program of each shard, an index into `programs`.
        offsets: The positions that a program takes as arguments after its operands, of shape (shards, positions).
        intermediate_bytes: The bytes of intermediate values of the largest shard.
    """

    op: Operation
    programs: Sequence[ShardProgram]
    program_of: Sequence[int]
    offsets: Ints
    intermediate_bytes: int

    def program(self, shard: int) -> ShardProgram:
        """Return the program of a shard by its number."""
        return self.programs[self.program_of[shard]]


@dataclass(eq=False)
class TensorCopy(Work):
    """A materialized view."""


@dataclass(eq=False)
class BlockGraph:
    """The block graph of a program.

    Attributes:
        sources: The arguments of the program.
        constants: The constants of the program, which shards read region by region, as they read arguments.
        sinks: The results of the program.
        tensors: All tensors.
        works: The operations and copies, in program order.
    """

    sources: tuple[StoredTensor, ...]
    constants: Mapping[StoredTensor, Array]
    sinks: tuple[StoredTensor, ...]
    tensors: tuple[Tensor, ...]
    works: tuple[Work, ...]

    def shards(self) -> Iterator[Shard]:
        """Return all units of work."""
        return (shard for work in self.works for shard in work.shards)

    @cached_property
    def writers(self) -> dict[StoredTensor, Work]:
        """The work that writes each tensor."""
        return {tensor: work for work in self.works for tensor in work.results}


def stored_regions(tensor: Tensor, region: Box) -> Iterator[tuple[StoredTensor, Box]]:
    """Yield the regions of stored tensors that a read of `region` accesses."""
    match tensor:
        case TensorView():
            for part, overlap in overlaps(tensor, region):
                yield from stored_regions(part.source, part.projection.image(overlap))
        case StoredTensor():
            yield tensor, region
        case _:
            raise TypeError(f"{tensor.name} is neither stored nor a view")


def overlaps(view: TensorView, region: Box) -> Iterator[tuple[Part, Box]]:
    """Yield the parts of `view` that overlap `region`, with the overlap."""
    for part in view.parts:
        start, end = np.maximum(part.region.start, region.start), np.minimum(part.region.end, region.end)
        if (start < end).all():
            yield part, Box(start, end)


def regions_read(shard: Shard) -> Iterator[tuple[StoredTensor, list[int], list[int]]]:
    """Yield the regions of stored tensors that a shard reads: the tensor, the start and the end."""
    for tensor, regions in zip(shard.work.operands, shard.work.reads, strict=True):
        start, end = regions.of(shard.number)
        if any(map(int.__ge__, start, end)):
            continue
        if isinstance(tensor, StoredTensor):
            yield tensor, start, end
        else:
            for stored, region in stored_regions(tensor, Box.of(start, end)):
                yield stored, region.start.tolist(), region.end.tolist()


def chunks_read(shard: Shard) -> Sequence[tuple[StoredTensor, int]]:
    """Return the chunks that a shard reads, each once."""
    return list(
        dict.fromkeys(
            (tensor, chunk) for tensor, start, end in regions_read(shard) for chunk in tensor.overlapping(start, end)
        )
    )


def tensors_read(tensor: Tensor) -> Iterator[Tensor]:
    """Yield `tensor` and, recursively, the tensors that it is a view of."""
    yield tensor
    if isinstance(tensor, TensorView):
        for part in tensor.parts:
            yield from tensors_read(part.source)


def remove_dead_parts(graph: BlockGraph) -> BlockGraph:
    """Return `graph` without the shards and tensors that no sink depends on."""
    needed = shards_needed(graph, {})
    for work in graph.works:
        work.shards = [shard for shard in work.shards if needed[work][shard.number]]
    works = tuple(work for work in graph.works if work.shards)
    read: set[Tensor] = {*graph.sources, *graph.sinks}
    for work in works:
        read.update(work.results)
        for operand in work.operands:
            read.update(tensors_read(operand))
    return replace(
        graph,
        constants={tensor: array for tensor, array in graph.constants.items() if tensor in read},
        tensors=tuple(tensor for tensor in graph.tensors if tensor in read),
        works=works,
    )


def shards_needed(graph: BlockGraph, stored: Mapping[StoredTensor, Collection[int]]) -> dict[Work, Bools]:
    """Return which shards of each work, by number, the sinks depend on, except for chunks that are stored."""
    stored_tensors = (tensor for tensor in graph.tensors if isinstance(tensor, StoredTensor))
    chunks = {tensor: np.zeros(len(tensor.chunks.start), np.bool_) for tensor in stored_tensors}
    for sink in graph.sinks:
        chunks[sink][:] = True
    needed: dict[Work, Bools] = {}
    for work in reversed(graph.works):
        needed[work] = np.zeros(len(work.shard_bytes), np.bool_)
        for result in work.results:
            missing = chunks[result]
            missing[list(stored.get(result, ()))] = False
            needed[work] |= missing
        for operand, regions in zip(work.operands, work.reads, strict=True):
            _mark_read(operand, Regions(regions.start[needed[work]], regions.end[needed[work]]), chunks)
    return needed


def _mark_read(operand: Tensor, regions: Regions, chunks: Mapping[StoredTensor, Bools]) -> None:
    """Mark the chunks that regions of an operand are in."""
    open_tensors = [tensor for tensor in tensors_read(operand) if isinstance(tensor, StoredTensor)]
    for number, (start, end) in enumerate(zip(regions.start.tolist(), regions.end.tolist(), strict=True)):
        if number % 16 == 0 and all(chunks[tensor].all() for tensor in open_tensors):
            return
        if any(map(int.__ge__, start, end)):
            continue
        if isinstance(operand, StoredTensor):
            chunks[operand][operand.overlapping(start, end)] = True
            continue
        for tensor, region in stored_regions(operand, Box.of(start, end)):
            chunks[tensor][tensor.overlapping(region.start.tolist(), region.end.tolist())] = True
