"""Validation of block graphs: every chunk that is read or is part of a result is written exactly once."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from sdy.box import Box
from sdy.passes.blocks.graph import (
    BlockGraph,
    Regions,
    StoredTensor,
    Tensor,
    TensorView,
    shards_needed,
    stored_regions,
    tensors_read,
)


class BlockGraphError(ValueError):
    """A block graph that cannot be executed."""


def validate(graph: BlockGraph) -> None:
    """Check that a block graph can be executed.

    Raises:
        BlockGraphError: Chunks of a tensor overlap or do not cover it; a chunk that is read, or is part of a result, is
            written by no shard or by several; a shard depends on its own result; a view or a shard reads elements
            outside of its sources.
    """
    for tensor in graph.tensors:
        if isinstance(tensor, TensorView):
            _check_tiles(tensor.name, tensor.shape, _boxes([part.region for part in tensor.parts]), "parts")
            for part in tensor.parts:
                image = part.projection.image(part.region)
                if Box.of_shape(part.source.shape).shared(image) != image.size:
                    raise BlockGraphError(f"{tensor.name} is a view of elements that {part.source.name} does not have")
        elif isinstance(tensor, StoredTensor):
            _check_tiles(tensor.name, tensor.shape, tensor.chunks, "chunks")
    _check_written_once(graph)
    for work in graph.works:
        for operand, regions in zip(work.operands, work.reads, strict=True):
            if (regions.start < 0).any() or (regions.end > np.array(operand.shape, np.int64)).any():
                raise BlockGraphError(f"{work.name} reads elements outside of {operand.name}")
    _check_available(graph)


def _check_written_once(graph: BlockGraph) -> None:
    written: set[tuple[StoredTensor, int]] = set()
    for shard in graph.shards():
        for tensor in shard.work.results:
            if (tensor, shard.number) in written:
                raise BlockGraphError(f"chunk {shard.number} of {tensor.name} is written twice")
            written.add((tensor, shard.number))


def _check_available(graph: BlockGraph) -> None:
    """Check that the chunks that works read and that are part of results are written, by works before them."""
    written: set[StoredTensor] = {*graph.sources, *graph.constants}
    later = {result for work in graph.works for result in work.results}
    for work in graph.works:
        for operand, regions in zip(work.operands, work.reads, strict=True):
            missing = {each for each in tensors_read(operand) if isinstance(each, StoredTensor)} - written
            if early := missing & later:
                raise BlockGraphError(f"{work.name} depends on {_first(early)}, its own result or a later one")
            if missing and (unwritten := missing & set(_sources(operand, regions))):
                raise BlockGraphError(f"{work.name} reads {_first(unwritten)}, which is written by nothing")
        written.update(work.results)
        later.difference_update(work.results)
    needed = shards_needed(graph, {})
    for work in graph.works:
        missing = set(needed[work].nonzero()[0].tolist()).difference(shard.number for shard in work.shards)
        if missing:
            name = work.results[0].name
            raise BlockGraphError(f"chunk {min(missing)} of {name}, which a result needs, is written by nothing")


def _sources(operand: Tensor, regions: Regions) -> Iterator[StoredTensor]:
    """Yield the tensors with the elements of regions of an operand; a view may have others that no region reaches."""
    for start, end in zip(regions.start.tolist(), regions.end.tolist(), strict=True):
        if all(map(int.__lt__, start, end)):
            yield from (tensor for tensor, _ in stored_regions(operand, Box.of(start, end)))


def _first(tensors: Collection[StoredTensor]) -> str:
    return min(tensor.name for tensor in tensors)


def _check_tiles(name: str, shape: tuple[int, ...], boxes: Box, what: str) -> None:
    """Check that boxes partition a tensor: they are inside of it, have its number of elements, and do not overlap."""
    if (boxes.start < 0).any() or (boxes.end > np.array(shape, np.int64)).any():
        raise BlockGraphError(f"{what} of {name} lie outside of it")
    if int(boxes.size.sum()) != int(np.prod(shape, dtype=np.int64)) or _any_overlap(boxes):
        raise BlockGraphError(f"the {what} of {name} do not cover each of its elements once")


def _any_overlap(boxes: Box) -> bool:
    """Return whether two boxes overlap: boxes of a grid do not if their corners differ."""
    if len(boxes.start) < 2:
        return False
    sizes = boxes.shape.max(axis=0)
    if not (boxes.start % sizes).any():
        return len(np.unique(boxes.start, axis=0)) < len(boxes.start)
    return any(
        (Box(boxes.start[number + 1 :], boxes.end[number + 1 :]).shared(box) > 0).any()
        for number, box in enumerate(boxes)
    )


def _boxes(boxes: Sequence[Box]) -> Box:
    return Box(np.stack([box.start for box in boxes]), np.stack([box.end for box in boxes]))
