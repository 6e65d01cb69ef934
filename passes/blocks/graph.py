"""Block graph of a program: operations partitioned into shards, and tensors partitioned into chunks.

    Source -> Tensor x (chunks) ----.
                                     BlockOp (shards) -> Tensor y (chunks) -> TensorView z -> TensorCopy -> Sink
    Source -> Tensor w (chunks) ----'

A stored tensor has chunks, and each chunk is written by one block shard. A view has no storage: it maps each of its
elements to an element of another tensor. A copy materializes a view.

Source: Tapestry's block graph (crutcher/tapestry, BlockGraph).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from xdsl.ir import Operation

from sdy.blocks import BlockOperation
from sdy.blocks.projection import Projection
from sdy.box import Box

DType = np.dtype[np.generic]


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


@dataclass(eq=False)
class StoredTensor(Tensor):
    """A tensor stored in chunks, an array of boxes; a source, an argument of the program, has one chunk."""

    chunks: Box
    is_source: bool = False

    def chunk_bytes(self, chunk: int) -> int:
        """Return the bytes of one chunk."""
        return int(self.chunks[chunk].size) * self.dtype.itemsize

    def overlapping(self, region: Box) -> Sequence[int]:
        """Return the chunks that overlap a single region."""
        return self.chunks.shared(region).nonzero()[0].tolist()


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


@dataclass(eq=False)
class Shard:
    """A unit of work: it reads a region of each operand, and writes one chunk of each result.

    Attributes:
        work: The operation or copy.
        index: The block of the operation's index space; None if it is not partitioned.
        reads: The region of each operand; None if the shard reads only padding.
        writes: The chunk of each result.
    """

    work: "Work"
    index: Box | None
    reads: tuple[Box | None, ...]
    writes: tuple[int, ...]

    @cached_property
    def nbytes(self) -> int:
        """The bytes of the regions read and the chunks written."""
        read = sum(
            int(region.size) * tensor.dtype.itemsize
            for tensor, region in zip(self.work.operands, self.reads, strict=True)
            if region is not None
        )
        return read + sum(map(StoredTensor.chunk_bytes, self.work.results, self.writes))


@dataclass(eq=False)
class Work:
    """An operation or a copy, partitioned into shards."""

    name: str
    operands: tuple[Tensor, ...]
    results: tuple[StoredTensor, ...]
    shards: list[Shard] = field(default_factory=list[Shard], init=False)


@dataclass(eq=False)
class BlockOp(Work):
    """An operation of the program, computed in blocks, or unpartitioned if `blocks` is None."""

    op: Operation
    blocks: BlockOperation | None


@dataclass(eq=False)
class TensorCopy(Work):
    """A materialized view."""


@dataclass(eq=False)
class BlockGraph:
    """The block graph of a program.

    Attributes:
        sources: The arguments of the program.
        sinks: The results of the program.
        tensors: All tensors.
        works: The operations and copies, in program order.
    """

    sources: tuple[StoredTensor, ...]
    sinks: tuple[StoredTensor, ...]
    tensors: tuple[Tensor, ...]
    works: tuple[Work, ...]

    def shards(self) -> Iterator[Shard]:
        """Return all units of work."""
        return (shard for work in self.works for shard in work.shards)

    @cached_property
    def writers(self) -> dict[tuple[StoredTensor, int], Shard]:
        """The shard that writes each chunk."""
        return {
            (tensor, chunk): shard
            for shard in self.shards()
            for tensor, chunk in zip(shard.work.results, shard.writes, strict=True)
        }


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


def chunks_read(shard: Shard) -> Iterator[tuple[StoredTensor, int]]:
    """Yield the chunks that a shard reads, each once."""
    seen: set[tuple[StoredTensor, int]] = set()
    for tensor, region in zip(shard.work.operands, shard.reads, strict=True):
        if region is None:
            continue
        for stored, stored_region in stored_regions(tensor, region):
            for chunk in stored.overlapping(stored_region):
                if (stored, chunk) not in seen:
                    seen.add((stored, chunk))
                    yield stored, chunk


def tensors_read(tensor: Tensor) -> Iterator[Tensor]:
    """Yield `tensor` and, recursively, the tensors that it is a view of."""
    yield tensor
    if isinstance(tensor, TensorView):
        for part in tensor.parts:
            yield from tensors_read(part.source)


def remove_dead_parts(graph: BlockGraph) -> BlockGraph:
    """Return `graph` without the shards and tensors that no sink depends on."""
    worklist = [(sink, chunk) for sink in graph.sinks for chunk in range(len(sink.chunks))]
    live: set[Shard] = set()
    while worklist:
        shard = graph.writers.get(worklist.pop())
        if shard is not None and shard not in live:
            live.add(shard)
            worklist += chunks_read(shard)
    for work in graph.works:
        work.shards = [shard for shard in work.shards if shard in live]
    works = tuple(work for work in graph.works if work.shards)
    read: set[Tensor] = {*graph.sources, *graph.sinks}
    for work in works:
        read.update(work.results)
        for operand in work.operands:
            read.update(tensors_read(operand))
    return BlockGraph(graph.sources, graph.sinks, tuple(tensor for tensor in graph.tensors if tensor in read), works)


def readers(graph: BlockGraph) -> dict[tuple[StoredTensor, int], int]:
    """Return the number of shards that read each chunk."""
    counts: dict[tuple[StoredTensor, int], int] = {}
    for shard in graph.shards():
        for chunk in chunks_read(shard):
            counts[chunk] = counts.get(chunk, 0) + 1
    return counts
