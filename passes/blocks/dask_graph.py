"""Conversion of a block graph to a Dask graph, to run programs on a cluster.

A task is a shard, or one chunk of a shard that writes several. Each task carries its program as text and a recipe that
assembles its operands from chunks, so that workers need nothing but this package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdy.box import Box
from sdy.passes.blocks.chunk_store import Array
from sdy.passes.blocks.graph import BlockGraph, StoredTensor, Tensor, chunks_read
from sdy.passes.blocks.kernel import run_program, shard_program, touched_shapes
from sdy.passes.blocks.reading import read_operands

Task = tuple[Any, ...]
Argument = Array | str | Path


@dataclass(frozen=True)
class _Recipe:
    """The regions that a shard reads, and the position of each chunk among the arguments of its task."""

    tensors: tuple[Tensor, ...]
    reads: tuple[Box | None, ...]
    shapes: tuple[tuple[int, ...], ...]
    places: dict[tuple[str, int], int]

    def operands(self, chunks: Sequence[Array]) -> list[Array]:
        def chunk_of(tensor: StoredTensor, number: int) -> Array:
            return chunks[self.places[tensor.name, number]]

        return read_operands(self.tensors, self.reads, self.shapes, chunk_of)


def dask_graph(graph: BlockGraph, arguments: Sequence[Argument]) -> tuple[dict[str, Task], list[str]]:
    """Return the tasks by key, and the key of each result of the program.

    Args:
        graph: The block graph.
        arguments: Arrays, or paths of `.npy` files that every worker can read; a shard then reads only its region.
    """
    tasks: dict[str, Task] = {}
    for source, argument in zip(graph.sources, arguments, strict=True):
        tasks[_key(source, 0)] = (
            (np.load, str(argument), "r") if isinstance(argument, str | Path) else (np.asarray, argument)
        )
    for number, shard in enumerate(graph.shards()):
        read = list(chunks_read(shard))
        places = {(tensor.name, chunk): place for place, (tensor, chunk) in enumerate(read)}
        recipe = _Recipe(shard.work.operands, shard.reads, tuple(touched_shapes(shard)), places)
        tasks[f"shard-{number}"] = (_compute, shard_program(shard), recipe, *(_key(*key) for key in read))
        for place, key in enumerate(zip(shard.work.results, shard.writes, strict=True)):
            tasks[_key(*key)] = (_entry, f"shard-{number}", place)
    results: list[str] = []
    for number, sink in enumerate(graph.sinks):
        keys = [_key(sink, chunk) for chunk in range(len(sink.chunks))]
        tasks[f"result-{number}"] = (_assemble, sink.shape, sink.dtype, sink.chunks, *keys)
        results.append(f"result-{number}")
    return tasks, results


def _key(tensor: StoredTensor, chunk: int) -> str:
    return f"chunk-{tensor.name}-{chunk}"


def _compute(program: str | None, recipe: _Recipe, *chunks: Array) -> list[Array]:
    operands = recipe.operands(chunks)
    return [np.array(operand) for operand in operands] if program is None else run_program(program, operands)


def _entry(results: Sequence[Array], place: int) -> Array:
    return results[place]


def _assemble(shape: tuple[int, ...], dtype: np.dtype[np.generic], boxes: Box, *chunks: Array) -> Array:
    result = np.empty(shape, dtype)
    for box, chunk in zip(boxes, chunks, strict=True):
        result[tuple(map(slice, box.start.tolist(), box.end.tolist()))] = chunk
    return result
