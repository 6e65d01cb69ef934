"""The block graph of a program: what is computed in blocks, of which parts of which tensors.

    Source -> Tensor x (chunks) ----.
                                     BlockOp (shards) -> Tensor y (chunks) -> TensorView z -> TensorCopy -> Sink
    Source -> Tensor w (chunks) ----'

A tensor that is stored has chunks, and each chunk is written by one block shard. A view has no storage: it says of each
of its elements which element of another tensor it is. A copy gives a view storage.

Source: Tapestry's block graph (crutcher/tapestry, BlockGraph).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from xdsl.ir import Operation

from sdy.blocks import BlockOperation
from sdy.box import Box
from sdy.projection import Projection

DType = np.dtype[np.generic]


@dataclass(eq=False)
class Tensor:
    """A tensor of the program, by the name that it is printed with."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        """The bytes of all of its elements."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(eq=False)
class StoredTensor(Tensor):
    """A tensor in chunks, an array of boxes. That of a source is an argument of the program, in one chunk."""

    chunks: Box
    is_source: bool = False

    def chunk_bytes(self, chunk: int) -> int:
        """The bytes of one chunk."""
        return int(self.chunks[chunk].size) * self.dtype.itemsize

    def overlapping(self, region: Box) -> Sequence[int]:
        """The chunks that have an element of a single region."""
        return self.chunks.shared(region).nonzero()[0].tolist()


@dataclass(frozen=True, eq=False)
class Part:
    """Element `i` of a view's `region` is element `projection(i)` of `source`."""

    region: Box
    source: Tensor
    projection: Projection


@dataclass(eq=False)
class TensorView(Tensor):
    """A tensor whose elements are those of others: routed, concatenated, or read with other strides."""

    parts: tuple[Part, ...]


@dataclass(eq=False)
class Shard:
    """A unit of work: it reads a region of each operand, and writes one chunk of each result.

    `index` is its block of the operation's index space. A region is None where the shard reads only padding.
    """

    work: "Work"
    index: Box | None
    reads: tuple[Box | None, ...]
    writes: tuple[int, ...]

    @cached_property
    def nbytes(self) -> int:
        """The memory that it takes for what it reads and writes."""
        read = sum(
            int(region.size) * tensor.dtype.itemsize
            for tensor, region in zip(self.work.operands, self.reads, strict=True)
            if region is not None
        )
        return read + sum(map(StoredTensor.chunk_bytes, self.work.results, self.writes))


@dataclass(eq=False)
class Work:
    """What shards are parts of: an operation, or a copy."""

    name: str
    operands: tuple[Tensor, ...]
    results: tuple[StoredTensor, ...]
    shards: list[Shard] = field(default_factory=list[Shard], init=False)


@dataclass(eq=False)
class BlockOp(Work):
    """An operation of the program, computed in blocks, or whole where `blocks` is None."""

    op: Operation
    blocks: BlockOperation | None


@dataclass(eq=False)
class TensorCopy(Work):
    """A view that is given storage."""


@dataclass(eq=False)
class BlockGraph:
    """The graph: `sources` are the arguments of the program, `sinks` its results, and `works` are in program order."""

    sources: tuple[StoredTensor, ...]
    sinks: tuple[StoredTensor, ...]
    tensors: tuple[Tensor, ...]
    works: tuple[Work, ...]

    def shards(self) -> Iterator[Shard]:
        """All units of work."""
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
    """What reading `region` reads of tensors that are stored."""
    match tensor:
        case TensorView():
            for part, overlap in overlaps(tensor, region):
                yield from stored_regions(part.source, part.projection.image(overlap))
        case StoredTensor():
            yield tensor, region
        case _:
            raise TypeError(f"{tensor.name} is neither stored nor a view")


def overlaps(view: TensorView, region: Box) -> Iterator[tuple[Part, Box]]:
    """The parts that a region is made of, and the region of each."""
    for part in view.parts:
        start, end = np.maximum(part.region.start, region.start), np.minimum(part.region.end, region.end)
        if (start < end).all():
            yield part, Box(start, end)


def chunks_read(shard: Shard) -> Iterator[tuple[StoredTensor, int]]:
    """The chunks that a shard reads, each once."""
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
    """`tensor`, and those that it is a view of."""
    yield tensor
    if isinstance(tensor, TensorView):
        for part in tensor.parts:
            yield from tensors_read(part.source)
