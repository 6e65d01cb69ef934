"""Hash of a program, its blocks and its arguments: the key of its tasks, and the mark of its stored results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sdy.extras import explain_missing_extra
from sdy.passes.blocks.graph import BlockGraph, BlockOp, StoredTensor, Tensor, TensorView


def token_of(graph: BlockGraph, arguments: Sequence[Any]) -> str:
    """Return a hash of a program, its blocks and its arguments; of files, of their names, sizes and times."""
    with explain_missing_extra("hashing arguments"):
        from dask.tokenize import tokenize
    works = [
        (
            work.name,
            [*map(_description, work.operands)],
            [*map(_description, work.results)],
            [(regions.start, regions.end) for regions in work.reads],
            (work.programs, work.program_of, work.offsets) if isinstance(work, BlockOp) else None,
        )
        for work in graph.works
    ]
    return tokenize(works, [*map(_description, graph.sinks)], *graph.constants.values(), *map(_content, arguments))


def _description(tensor: Tensor) -> object:
    if isinstance(tensor, TensorView):
        parts = [
            (part.region.start, part.region.end, vars(part.projection), _description(part.source))
            for part in tensor.parts
        ]
        return tensor.name, tensor.shape, str(tensor.dtype), parts
    assert isinstance(tensor, StoredTensor)
    return tensor.name, tensor.shape, str(tensor.dtype), (tensor.chunks.start, tensor.chunks.end)


def _content(argument: Any) -> object:
    path = argument if isinstance(argument, str | Path) else getattr(getattr(argument, "store", None), "root", None)
    if path is None:
        return argument if hasattr(argument, "__dask_tokenize__") else np.asarray(argument)
    files = sorted(each for each in Path(path).rglob("*") if each.is_file()) or [Path(path)]
    states = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    return str(path), getattr(argument, "path", ""), states
