"""Conversion of a block graph to a Dask graph, to run programs on a cluster.

A task is a shard, or one chunk of a shard that writes several. Each task carries its program as text and a recipe that
assembles its operands from chunks, so that workers need nothing but this package.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdy.box import Box
from sdy.passes.blocks.chunk_store import Array
from sdy.passes.blocks.graph import BlockGraph, Shard, StoredTensor, Tensor, chunks_read
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

    Keys contain a hash of the program, its blocks and the arguments: a cluster computes tasks of equal keys once.

    Args:
        graph: The block graph.
        arguments: Arrays, or paths of `.npy` files that every worker can read; a shard then reads only its region.
    """
    shards = list(graph.shards())
    steps = list(map(_step, shards))
    token = _token([graph.sources, graph.sinks, steps], arguments)

    def key_of(tensor: StoredTensor, chunk: int) -> str:
        return f"chunk-{token}-{tensor.name}-{chunk}"

    tasks: dict[str, Task] = {}
    for source, argument in zip(graph.sources, arguments, strict=True):
        tasks[key_of(source, 0)] = (
            (np.load, str(argument), "r") if isinstance(argument, str | Path) else (np.asarray, argument)
        )
    for number, (step, shard) in enumerate(zip(steps, shards, strict=True)):
        key = f"shard-{token}-{number}"
        tasks[key] = (_compute, step.program, step.recipe, *(key_of(*chunk) for chunk in step.chunks))
        for place, written in enumerate(zip(shard.work.results, shard.writes, strict=True)):
            tasks[key_of(*written)] = (_entry, key, place)
    results: list[str] = []
    for number, sink in enumerate(graph.sinks):
        keys = [key_of(sink, chunk) for chunk in range(len(sink.chunks))]
        results.append(f"result-{token}-{number}")
        tasks[results[-1]] = (_assemble, sink.shape, sink.dtype, sink.chunks, *keys)
    return tasks, results


@dataclass(frozen=True)
class _Step:
    """The program of a shard, and the chunks that it reads."""

    program: str | None
    recipe: _Recipe
    chunks: Sequence[tuple[StoredTensor, int]]


def _step(shard: Shard) -> _Step:
    chunks = list(chunks_read(shard))
    places = {(tensor.name, chunk): place for place, (tensor, chunk) in enumerate(chunks)}
    recipe = _Recipe(shard.work.operands, shard.reads, tuple(touched_shapes(shard)), places)
    return _Step(shard_program(shard), recipe, chunks)


def _token(parts: object, arguments: Sequence[Argument]) -> str:
    """Return a hash of the parts of a graph and of its arguments; of files, of their paths, sizes and times."""
    from dask.tokenize import tokenize  # dask is installed with the extra of this name only

    return tokenize(pickle.dumps(parts), *map(_content, arguments))


def _content(argument: Argument) -> object:
    if not isinstance(argument, str | Path):
        return argument
    status = Path(argument).stat()
    return str(argument), status.st_size, status.st_mtime_ns


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
