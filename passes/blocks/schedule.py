"""Execution of a block graph in bounded memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sdy.box import Ints
from sdy.diagnostics import DiagnosticError, error
from sdy.passes.blocks.arrays import Array, ArrayReader, Whole, reader
from sdy.passes.blocks.chunk_store import ChunkStore, write_chunk
from sdy.passes.blocks.graph import BlockGraph, BlockOp, Shard, StoredTensor, chunks_read, shards_needed
from sdy.passes.blocks.kernel import compile_shards, run_shard
from sdy.passes.blocks.reading import read_chunks, read_region
from sdy.passes.blocks.result_store import ResultStore
from sdy.passes.blocks.token import token_of
from sdy.progress import track


@dataclass(frozen=True)
class RunStatistics:
    """Statistics of a run.

    Attributes:
        shards: Number of shards computed.
        most_bytes: Peak memory of chunks, in bytes.
        spilled_bytes: Bytes of intermediate values written to files.
        loaded_bytes: Bytes of intermediate values read from files.
    """

    shards: int
    most_bytes: int
    spilled_bytes: int
    loaded_bytes: int


class MemoryLimitError(DiagnosticError, ValueError):
    """A shard needs more memory than the limit."""


def run(
    graph: BlockGraph, arguments: Sequence[Any], memory_limit: int, store: Path | None = None
) -> tuple[list[Any], RunStatistics]:
    """Run the program of a block graph.

    Args:
        graph: The block graph.
        arguments: The arguments of the program: arrays of NumPy, JAX, Zarr or Dask, or paths of `.npy` files or Zarr
            arrays. Shards read regions of them.
        memory_limit: Maximal bytes in memory, excluding arguments that are in memory, and the results if they are not
            stored. Chunks that do not fit are spilled to files.
        store: Folder of the results, a Zarr group. A run that was interrupted goes on from the chunks that are stored
            there. None returns results in memory.

    Returns:
        The results, as NumPy or Zarr arrays, and statistics.

    Raises:
        ValueError: An argument has another shape or element type than its parameter.
        MemoryLimitError: A single shard exceeds the limit; the location is its operation.
    """
    readers = check_arguments(graph, arguments)
    _check_fits(graph, memory_limit)
    results: dict[StoredTensor, Any] = {sink: np.empty(sink.shape, sink.dtype) for sink in graph.sinks if store is None}
    stored: dict[StoredTensor, set[int]] = {}
    if store is not None:
        group = ResultStore(store, token_of(graph, arguments))
        results = group.arrays(graph.sinks)
        stored = {sink: group.stored_chunks(sink, array) for sink, array in results.items()}
    chunks = ChunkStore(memory_limit, store, results)
    count = _Execution(graph, readers, chunks, stored).run()
    statistics = RunStatistics(count, chunks.most_bytes, chunks.spilled_bytes, chunks.loaded_bytes)
    return [results[sink] for sink in graph.sinks], statistics


def depth_first(graph: BlockGraph, stored: Mapping[StoredTensor, Collection[int]] | None = None) -> Iterator[Shard]:
    """Yield the shards in topological order, each producer as late as possible, to keep chunks alive briefly.

    Args:
        graph: The block graph.
        stored: Chunks that need not be computed.

    Raises:
        ValueError: The graph has a cycle.
    """
    done: set[Shard] = set()
    open_shards: set[Shard] = set()
    skipped = stored or {}

    def writer(chunk: tuple[StoredTensor, int]) -> Shard | None:
        tensor, number = chunk
        work = graph.writers.get(tensor)
        return None if work is None or number in skipped.get(tensor, ()) else work.shard(number)

    for sink in graph.sinks:
        for number in range(len(sink.chunks.start)):
            pending = [(shard, False)] if (shard := writer((sink, number))) else []
            while pending:
                shard, is_ready = pending.pop()
                if is_ready:
                    open_shards.remove(shard)
                    done.add(shard)
                    yield shard
                elif shard in open_shards:
                    raise ValueError(f"{shard.work.name} of {shard.work.results[0].name} depends on its own result")
                elif shard not in done:
                    open_shards.add(shard)
                    pending.append((shard, True))
                    before = filter(None, map(writer, chunks_read(shard)))
                    pending += [(other, False) for other in reversed([*before]) if other not in done]


class _Execution:
    """A run of the shards of a graph.

    If all intermediate values fit in half of the limit, each is one array, and works run one after the other. Else they
    are chunks, and shards run depth first.
    """

    def __init__(
        self,
        graph: BlockGraph,
        arguments: Mapping[StoredTensor, ArrayReader],
        chunks: ChunkStore,
        stored: Mapping[StoredTensor, Collection[int]],
    ):
        self._arguments = dict(arguments)
        self._chunks = chunks
        between = [tensor for work in graph.works for tensor in work.results if tensor not in graph.sinks]
        self._arrays: dict[StoredTensor, Array] = {}
        self._readers_left: dict[StoredTensor, Ints] = {}
        """The number of shards that have yet to read each chunk of an intermediate value that is not an array."""
        if 2 * sum(tensor.nbytes for tensor in between) <= chunks.limit:
            needed = shards_needed(graph, stored)
            self._shards = [shard for shard in graph.shards() if needed[shard.work][shard.number]]
            for tensor in between:
                self._arrays[tensor] = np.empty(tensor.shape, tensor.dtype)
                self._arguments[tensor] = Whole(self._arrays[tensor])
            chunks.reserve(sum(tensor.nbytes for tensor in between))
        else:
            self._shards = list(depth_first(graph, stored))
            self._readers_left = {tensor: np.zeros(len(tensor.chunks.start), np.int64) for tensor in graph.writers}
            for tensor, number in chain.from_iterable(map(self._chunks_read, self._shards)):
                self._readers_left[tensor][number] += 1

    def run(self) -> int:
        """Compute the shards, and return their number."""
        # Before chunks take memory, which the compiler needs, too. The first compilation brings the libraries into
        # memory, which an empty run does, too.
        compile_shards(self._shards, self._chunks.start)
        for shard in track("block", self._shards, lambda: len(self._shards)):
            self._compute(shard)
        return len(self._shards)

    def _compute(self, shard: Shard) -> None:
        self._chunks.make_room(shard.nbytes)
        operands: list[Array] = []
        for tensor, regions in zip(shard.work.operands, shard.work.reads, strict=True):
            operands.append(read_region(tensor, *regions.of(shard.number), self._read))
        for tensor, array in zip(shard.work.results, run_shard(shard, operands), strict=True):
            if tensor in self._arrays:
                write_chunk(self._arrays[tensor], tensor, shard.number, array)
                continue
            is_read = tensor in self._readers_left and self._readers_left[tensor][shard.number] > 0
            self._chunks.put(tensor, shard.number, array, is_read)
        for tensor, number in self._chunks_read(shard):
            self._readers_left[tensor][number] -= 1
            if not self._readers_left[tensor][number]:
                self._chunks.forget(tensor, number)

    def _chunks_read(self, shard: Shard) -> Sequence[tuple[StoredTensor, int]]:
        """Return the chunks of intermediate values that a shard reads."""
        if not self._readers_left:
            return ()
        return [chunk for chunk in chunks_read(shard) if chunk[0] in self._readers_left]

    def _read(self, tensor: StoredTensor, start: Sequence[int], end: Sequence[int]) -> Array:
        argument = self._arguments.get(tensor)
        return read_chunks(tensor, start, end, self._chunks.read) if argument is None else argument.read(start, end)


def check_arguments(graph: BlockGraph, arguments: Sequence[Any]) -> dict[StoredTensor, ArrayReader]:
    """Return a reader of each constant and argument; raise ValueError if one does not match its parameter."""
    if len(arguments) != len(graph.sources):
        raise ValueError(f"the program takes {len(graph.sources)} arguments, not {len(arguments)}")
    readers: dict[StoredTensor, ArrayReader] = {tensor: Whole(array) for tensor, array in graph.constants.items()}
    for source, argument in zip(graph.sources, arguments, strict=True):
        found = readers[source] = reader(argument, source.dtype)
        if (found.shape, found.dtype) != (source.shape, source.dtype):
            raise ValueError(
                f"{source.name} must have shape {source.shape} and elements of type {source.dtype}, "
                f"not {found.shape} and {found.dtype}"
            )
    return readers


def _check_fits(graph: BlockGraph, memory_limit: int) -> None:
    largest = max(graph.shards(), key=lambda shard: shard.nbytes, default=None)
    if largest is None or largest.nbytes <= memory_limit:
        return
    message = (
        f"a block of {largest.work.name} takes {largest.nbytes:,} bytes for what it reads and writes, "
        f"more than the limit of {memory_limit:,}; it fits with --memory-limit {largest.nbytes}"
    )
    where = largest.work.op if isinstance(largest.work, BlockOp) else None
    raise MemoryLimitError(error(where, message).diagnostic)
