"""Execution of a block graph in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sdy.passes.blocks.chunk_store import Array, ChunkStore
from sdy.passes.blocks.graph import BlockGraph, Shard, StoredTensor, chunks_read, readers
from sdy.passes.blocks.kernel import run_shard, touched_shapes
from sdy.passes.blocks.reading import read_operands
from sdy.progress import track


@dataclass(frozen=True)
class RunStatistics:
    """Statistics of a run.

    Attributes:
        shards: Number of shards computed.
        most_bytes: Peak memory of chunks, in bytes.
        spilled_bytes: Bytes written to files.
    """

    shards: int
    most_bytes: int
    spilled_bytes: int


class MemoryLimitError(ValueError):
    """A shard needs more memory than the limit."""


def run(
    graph: BlockGraph, arguments: Sequence[Array], memory_limit: int, directory: Path | None = None
) -> tuple[list[Array], RunStatistics]:
    """Run the program of a block graph.

    Args:
        graph: The block graph.
        arguments: The arguments of the program, which may be memory-mapped.
        memory_limit: Maximal bytes in memory, excluding the arguments, and the results if they are not written to
            files. Chunks that do not fit are spilled to files.
        directory: Folder of temporary files and of `.npy` files with the results; None returns results in memory.

    Returns:
        The results, and statistics.

    Raises:
        ValueError: An argument has another shape or element type than its parameter.
        MemoryLimitError: A single shard exceeds the limit.
    """
    _check_arguments(graph, arguments)
    _check_fits(graph, memory_limit)
    with TemporaryDirectory(dir=directory, prefix="chunks-") as folder:
        return _Execution(graph, arguments, ChunkStore(memory_limit, Path(folder)), directory).run()


def depth_first(graph: BlockGraph) -> Iterator[Shard]:
    """Yield the shards in topological order, each producer as late as possible, to keep chunks alive briefly.

    Raises:
        ValueError: The graph has a cycle.
    """
    done: set[Shard] = set()
    open_shards: set[Shard] = set()
    for sink in graph.sinks:
        for chunk in range(len(sink.chunks)):
            pending = [(shard, False)] if (shard := graph.writers.get((sink, chunk))) else []
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
                    before = filter(None, map(graph.writers.get, chunks_read(shard)))
                    pending += [(other, False) for other in reversed(list(before)) if other not in done]


class _Execution:
    def __init__(self, graph: BlockGraph, arguments: Sequence[Array], store: ChunkStore, directory: Path | None):
        self._graph = graph
        self._store = store
        self._arguments = dict(zip(graph.sources, arguments, strict=True))
        self._results = {sink: _result_array(sink, number, directory) for number, sink in enumerate(graph.sinks)}
        self._readers_left = readers(graph)

    def run(self) -> tuple[list[Array], RunStatistics]:
        count = 0
        for shard in track("block", depth_first(self._graph), lambda: len(list(self._graph.shards()))):
            self._compute(shard)
            count += 1
        for sink in self._results.keys() & self._arguments.keys():
            self._results[sink][...] = self._arguments[sink]
        statistics = RunStatistics(count, self._store.most_bytes, self._store.spilled_bytes)
        return [self._results[sink] for sink in self._graph.sinks], statistics

    def _compute(self, shard: Shard) -> None:
        self._store.make_room(shard.nbytes)
        operands = read_operands(shard.work.operands, shard.reads, touched_shapes(shard), self._chunk)
        for tensor, number, result in zip(shard.work.results, shard.writes, run_shard(shard, operands), strict=True):
            self._keep(tensor, number, result)
        for key in chunks_read(shard):
            self._readers_left[key] -= 1
            if not self._readers_left[key]:
                self._store.forget(key)

    def _keep(self, tensor: StoredTensor, number: int, array: Array) -> None:
        """Store a chunk: in its result, and in memory if shards read it."""
        if tensor in self._results:
            region = tensor.chunks[number]
            self._results[tensor][tuple(map(slice, region.start.tolist(), region.end.tolist()))] = array
        if self._readers_left.get((tensor, number)):
            self._store.put((tensor, number), array)

    def _chunk(self, tensor: StoredTensor, number: int) -> Array:
        return self._arguments[tensor] if tensor.is_source else self._store.get((tensor, number))


def _result_array(sink: StoredTensor, number: int, directory: Path | None) -> Array:
    if directory is None:
        return np.empty(sink.shape, sink.dtype)
    return np.lib.format.open_memmap(directory / f"result{number}.npy", "w+", sink.dtype, sink.shape)


def _check_arguments(graph: BlockGraph, arguments: Sequence[Array]) -> None:
    if len(arguments) != len(graph.sources):
        raise ValueError(f"the program takes {len(graph.sources)} arguments, not {len(arguments)}")
    for source, argument in zip(graph.sources, arguments, strict=True):
        if (argument.shape, argument.dtype) != (source.shape, source.dtype):
            raise ValueError(
                f"{source.name} must have shape {source.shape} and elements of type {source.dtype}, "
                f"not {argument.shape} and {argument.dtype}"
            )


def _check_fits(graph: BlockGraph, memory_limit: int) -> None:
    largest = max(graph.shards(), key=lambda shard: shard.nbytes, default=None)
    if largest is not None and largest.nbytes > memory_limit:
        raise MemoryLimitError(
            f"a block of {largest.work.name} takes {largest.nbytes:,} bytes for what it reads and writes, "
            f"more than the limit of {memory_limit:,}"
        )
