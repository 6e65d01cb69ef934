"""Conversion of a block graph to a Dask graph, to run programs on a cluster.

A task computes a shard; it opens files and Zarr arrays to read its regions of them, and reads those of other arguments
from chunks. Each task has what it needs to assemble its operands, so that workers need nothing but this package.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sdy.box import Box
from sdy.extras import explain_missing_extra
from sdy.passes.blocks.arrays import Array, ArrayReader, DaskArray, Whole, ZarrArray
from sdy.passes.blocks.chunk_store import chunk_shape, create_array
from sdy.passes.blocks.graph import (
    BlockGraph,
    BlockOp,
    Part,
    Shard,
    ShardProgram,
    StoredTensor,
    Tensor,
    TensorView,
    regions_read,
    tensors_read,
)
from sdy.passes.blocks.kernel import release_operands, run_program
from sdy.passes.blocks.reading import read_chunks, read_region
from sdy.passes.blocks.result_store import ResultStore
from sdy.passes.blocks.schedule import check_arguments
from sdy.passes.blocks.temporary_folder import folder_until_exit
from sdy.passes.blocks.token import token_of

Task = Any
Key = Hashable

_MOST_ASSEMBLED_BYTES = 2**26
"""The bytes of the largest result that is assembled in a task; a larger one is a Zarr array in a temporary folder."""


def dask_graph(graph: BlockGraph, arguments: Sequence[Any]) -> tuple[dict[Key, Task], list[Key]]:
    """Return the tasks by key, and the key of each result of the program.

    Keys contain a hash of the program, its blocks and the arguments: a cluster computes tasks of equal keys once. A
    result is an array of NumPy, or of Zarr if it is too large for one task, in a folder that the process removes when
    it ends.

    Args:
        graph: The block graph.
        arguments: Arrays of NumPy, JAX, Zarr or Dask, or paths of `.npy` files or Zarr arrays that every worker can
            read.
    """
    chunks = ChunkTasks(graph, arguments)
    tasks = dict(chunks.tasks)
    keys: list[Key] = []
    for number, sink in enumerate(graph.sinks):
        keys.append(f"result-{chunks.token}-{number}")
        if sink.nbytes <= _MOST_ASSEMBLED_BYTES:
            tasks[keys[-1]] = (_assemble, sink.shape, sink.dtype, sink.chunks, *chunks.keys(sink))
        else:
            array = create_array(folder_until_exit("sdy-result-"), "result", sink, "none")
            written = _store_tasks(chunks, sink, array, f"stored-{number}-{chunks.token}")
            tasks |= {**written, keys[-1]: (_after, ZarrArray(array, sink.dtype), *written)}
    return tasks, keys


def stored_graph(
    graph: BlockGraph, arguments: Sequence[Any], directory: Path
) -> tuple[dict[Key, Task], list[Key], list[Any]]:
    """Return the tasks by key, the keys of those that write results to a Zarr group, and the arrays of the group.

    Chunks that the group has already are not computed again.
    """
    chunks = ChunkTasks(graph, arguments)
    store = ResultStore(directory, chunks.token)
    arrays = store.arrays(graph.sinks)
    tasks, written = dict(chunks.tasks), list[Key]()
    for number, sink in enumerate(graph.sinks):
        stored = store.stored_chunks(sink, arrays[sink])
        new = _store_tasks(chunks, sink, arrays[sink], f"stored-{number}-{chunks.token}", stored)
        tasks |= new
        written += new
    return tasks, written, [arrays[sink] for sink in graph.sinks]


def _store_tasks(
    chunks: "ChunkTasks", sink: StoredTensor, array: Any, name: str, stored: Collection[int] = ()
) -> dict[Key, Task]:
    """Return tasks that write the chunks of a result to a Zarr array, except those that it has."""
    return {
        f"{name}-{number}": (_store, array, *sink.bounds(number), chunk)
        for number, chunk in enumerate(chunks.keys(sink))
        if number not in stored
    }


def dask_arrays(graph: BlockGraph, arguments: Sequence[Any]) -> list[Any]:
    """Return the results of a program as `dask.array`s, whose chunks are those of the block graph."""
    with explain_missing_extra("dask.array results"):
        array: Any = import_module("dask.array")
    chunks = ChunkTasks(graph, arguments)
    results: list[Any] = []
    for sink in graph.sinks:
        sizes = [
            tuple(min(part, size - first) for first in range(0, size, part))
            for size, part in zip(sink.shape, chunk_shape(sink), strict=True)
        ]
        results.append(array.Array(chunks.tasks, chunks.name(sink), sizes, sink.dtype))
    return results


class ChunkTasks:
    """The tasks that compute the chunks of the results of a program.

    Attributes:
        token: A hash of the program, its blocks and the arguments.
        tasks: The tasks by key. The key of a chunk is a tuple of a name and its position in the grid of chunks.
    """

    def __init__(self, graph: BlockGraph, arguments: Sequence[Any]):
        readers = check_arguments(graph, arguments)
        self._cut: dict[StoredTensor, StoredTensor] = {}
        self.token = token_of(graph, arguments)
        self.tasks: dict[Key, Task] = {}
        self._numbers = {tensor: number for number, tensor in enumerate(graph.tensors)}
        for source, argument in readers.items():
            self._add_source(graph, source, argument)
        for number, work in enumerate(graph.works):
            for shard in work.shards:
                self._add_shard(number, shard)

    def keys(self, tensor: StoredTensor) -> Iterator[tuple[Any, ...]]:
        """Yield the key of each chunk."""
        return (self._key(tensor, number) for number in range(len(tensor.chunks.start)))

    def _key(self, tensor: StoredTensor, number: int) -> tuple[Any, ...]:
        start, _ = tensor.bounds(number)
        return (self.name(tensor), *(first // size for first, size in zip(start, chunk_shape(tensor), strict=True)))

    def name(self, tensor: StoredTensor) -> str:
        """Return the first entry of the keys of the chunks of a tensor."""
        return f"chunk-{self._numbers[tensor]}-{tensor.name}-{self.token}"

    def _add_source(self, graph: BlockGraph, source: StoredTensor, argument: ArrayReader) -> None:
        """Add the chunks of an argument: a file or Zarr array, which tasks read, or chunks as large as they read."""
        if not isinstance(argument, Whole | DaskArray):
            self.tasks[self._key(source, 0)] = argument
            return
        cut = StoredTensor(source.name, source.shape, source.dtype, _chunks_of_source(graph, source), is_source=True)
        self._numbers[cut] = self._numbers[source]
        self._cut[source] = cut
        if isinstance(argument, DaskArray):
            array = argument.array.rechunk(chunk_shape(cut))
            self.tasks.update(array.__dask_graph__())
            places = product(*(range(len(sizes)) for sizes in array.chunks))
            self.tasks.update(((self.name(cut), *place), (array.name, *place)) for place in places)
            return
        for number, key in enumerate(self.keys(cut)):
            self.tasks[key] = argument.read(*cut.bounds(number))

    def _add_shard(self, place: int, shard: Shard) -> None:
        work, number = shard.work, shard.number
        program: str | None = None
        offsets: list[int] = []
        if isinstance(work, BlockOp):
            program = f"program-{place}-{work.program_of[number]}-{self.token}"
            self.tasks[program] = work.program(number)
            offsets = work.offsets[number].tolist()
        read: dict[StoredTensor, dict[int, None]] = {}
        for tensor, start, end in regions_read(shard):
            cut = self._cut.get(tensor, tensor)
            read.setdefault(cut, {}).update(dict.fromkeys(cut.overlapping(start, end)))
        computed = (
            _compute,
            program,
            self._recipe(shard, read),
            offsets,
            *(self._key(tensor, chunk) for tensor, chunks in read.items() for chunk in chunks),
        )
        if len(work.results) == 1:
            self.tasks[self._key(work.results[0], number)] = (_entry, computed, 0)
            return
        key = f"shard-{place}-{number}-{self.token}"
        self.tasks[key] = computed
        for entry, result in enumerate(work.results):
            self.tasks[self._key(result, number)] = (_entry, key, entry)

    def _recipe(self, shard: Shard, read: Mapping[StoredTensor, Iterable[int]]) -> "_Recipe":
        """Return how a shard assembles its operands from the chunks that it reads, in this order."""
        parts: dict[StoredTensor, StoredTensor] = {}
        first_of: dict[str, int] = {}
        count = 0
        for tensor, chunks in read.items():
            numbers = [*chunks]
            boxes = Box(tensor.chunks.start[numbers], tensor.chunks.end[numbers])
            parts[tensor] = StoredTensor(tensor.name, tensor.shape, tensor.dtype, boxes)
            first_of[tensor.name] = count
            count += len(numbers)

        def part(tensor: Tensor) -> Tensor:
            if isinstance(tensor, TensorView):
                read = [each for each in tensor.parts if _reads(each.source, parts, self._cut)]
                replaced = tuple(Part(each.region, part(each.source), each.projection) for each in read)
                return TensorView(tensor.name, tensor.shape, tensor.dtype, replaced)
            assert isinstance(tensor, StoredTensor)
            return parts.get(self._cut.get(tensor, tensor)) or Tensor(tensor.name, tensor.shape, tensor.dtype)

        regions = [(each.start[shard.number].tolist(), each.end[shard.number].tolist()) for each in shard.work.reads]
        return _Recipe(tuple(map(part, shard.work.operands)), regions, first_of)


def _reads(
    tensor: Tensor, parts: Mapping[StoredTensor, StoredTensor], cut: Mapping[StoredTensor, StoredTensor]
) -> bool:
    """Return whether all tensors behind a part of a view are among those that are read."""
    stored = [each for each in tensors_read(tensor) if isinstance(each, StoredTensor)]
    return any(cut.get(each, each) in parts for each in stored)


@dataclass(frozen=True, eq=False)
class _Recipe:
    """The chunks and regions from which a shard assembles its operands.

    Attributes:
        tensors: The operands, with only those chunks that the shard reads.
        regions: The start and the end of the region of each operand.
        first_of: The place of the first chunk of each tensor among those that the task gets.
    """

    tensors: tuple[Tensor, ...]
    regions: Sequence[tuple[list[int], list[int]]]
    first_of: Mapping[str, int]

    def operands(self, chunks: Sequence[Array | ArrayReader]) -> list[Array]:
        def read(tensor: StoredTensor, number: int, start: Sequence[int], end: Sequence[int]) -> Array:
            chunk = chunks[self.first_of[tensor.name] + number]
            if not isinstance(chunk, np.ndarray | np.generic):
                return chunk.read(start, end)
            first, _ = tensor.bounds(number)
            return np.asarray(chunk)[tuple(map(slice, map(int.__sub__, start, first), map(int.__sub__, end, first)))]

        def assemble(tensor: StoredTensor, start: Sequence[int], end: Sequence[int]) -> Array:
            return read_chunks(tensor, start, end, read)

        parts = zip(self.tensors, self.regions, strict=True)
        return [read_region(tensor, *region, assemble) for tensor, region in parts]


def _compute(
    program: ShardProgram | None, recipe: _Recipe, offsets: Sequence[int], *chunks: Array | ArrayReader
) -> list[Array]:
    release_operands()
    operands = recipe.operands(chunks)
    if program is None:
        return [np.array(operand) for operand in operands]
    return run_program(program, [*operands, *map(np.int64, offsets)])


def _entry(results: Sequence[Array], place: int) -> Array:
    return results[place]


def _assemble(shape: tuple[int, ...], dtype: np.dtype[np.generic], boxes: Box, *chunks: Array) -> Array:
    result = np.empty(shape, dtype)
    for box, chunk in zip(boxes, chunks, strict=True):
        result[tuple(map(slice, box.start.tolist(), box.end.tolist()))] = chunk
    return result


def _store(array: Any, start: Sequence[int], end: Sequence[int], chunk: Array) -> None:
    array[tuple(map(slice, start, end))] = chunk.view(array.dtype)


def _after(array: ZarrArray, *written: None) -> ZarrArray:
    return array


def _chunks_of_source(graph: BlockGraph, source: StoredTensor) -> Box:
    """Partition an argument into a grid of chunks no larger than the regions that shards read."""
    if 0 in source.shape:
        return source.chunks
    sizes = list(source.shape)
    regions = [
        regions.end - regions.start
        for work in graph.works
        for operand, regions in zip(work.operands, work.reads, strict=True)
        if operand is source
    ]
    if regions:
        sizes = np.concatenate(regions).max(axis=0, initial=1).tolist()
    return Box.of_shape(source.shape).blocks(sizes)
