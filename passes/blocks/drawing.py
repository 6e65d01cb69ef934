"""Export of block graphs: Graphviz for people, JSON for programs."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from graphviz import Digraph, escape

from sdy.formatting import escape_lines
from sdy.passes.blocks.graph import BlockGraph, StoredTensor, Tensor, TensorCopy, TensorView, chunks_read

Json = dict[str, Any]


class _Node(NamedTuple):
    key: str
    kind: str
    label: str


_SHAPES = {
    "Source": "invhouse",
    "Sink": "house",
    "Tensor": "box3d",
    "TensorChunk": "box",
    "TensorView": "parallelogram",
    "BlockOp": "component",
    "BlockShard": "oval",
    "TensorCopy": "oval",
}
"""Graphviz shape of each kind of nodes."""


def to_dot(graph: BlockGraph, chunks: bool = True) -> str:
    """Return the graph in Graphviz's language.

    Args:
        graph: The block graph.
        chunks: Whether to draw the chunks of tensors and the shards of operations.
    """
    nodes, edges = _nodes_and_edges(graph, chunks)
    drawing = Digraph("blocks", graph_attr={"rankdir": "LR"}, node_attr={"fontname": "monospace"})
    for node in nodes:
        drawing.node(node.key, escape(escape_lines(node.label)), shape=_SHAPES[node.kind])
    for tail, head in edges:
        drawing.edge(tail, head)
    return drawing.source


def to_json(graph: BlockGraph) -> Json:
    """Return the graph as `{"nodes": [{"id", "kind", "label", ...}], "edges": [[from, to], ...]}`.

    Nodes of tensors have their shape and element type; nodes of chunks and shards have the start and the end of their
    box.
    """
    nodes, edges = _nodes_and_edges(graph, chunks=True)
    details = dict(_details(graph))
    return {
        "nodes": [
            {"id": node.key, "kind": node.kind, "label": node.label} | details.get(node.key, {}) for node in nodes
        ],
        "edges": [list(edge) for edge in edges],
    }


def _nodes_and_edges(graph: BlockGraph, chunks: bool) -> tuple[list[_Node], list[tuple[str, str]]]:
    names = _names(graph)
    nodes = [_Node("source", "Source", "Source"), _Node("sink", "Sink", "Sink")]
    edges = [("source", names[tensor]) for tensor in graph.sources] + [
        (names[tensor], "sink") for tensor in graph.sinks
    ]
    for tensor in graph.tensors:
        kind = "TensorView" if isinstance(tensor, TensorView) else "Tensor"
        nodes.append(_Node(names[tensor], kind, f"{tensor.name}\n{'x'.join(map(str, (*tensor.shape, tensor.dtype)))}"))
        if isinstance(tensor, TensorView):
            edges += [(names[part.source], names[tensor]) for part in tensor.parts]
        elif isinstance(tensor, StoredTensor) and chunks:
            for number, chunk in enumerate(tensor.chunks):
                key = f"{names[tensor]}.{number}"
                nodes.append(_Node(key, "TensorChunk", f"{_box(chunk.start)} to {_box(chunk.end)}"))
                edges.append((key, names[tensor]))
    for number, work in enumerate(graph.works):
        key = f"w{number}"
        nodes.append(_Node(key, "TensorCopy" if isinstance(work, TensorCopy) else "BlockOp", work.name))
        edges += [(names[tensor], key) for tensor in work.operands]
        if not chunks:
            edges += [(key, names[tensor]) for tensor in work.results]
            continue
        for place, shard in enumerate(work.shards):
            shard_key = f"{key}.{place}"
            nodes.append(_Node(shard_key, "BlockShard", "whole" if shard.index is None else _box(shard.index.start)))
            edges.append((key, shard_key))
            edges += [(f"{names[tensor]}.{chunk}", shard_key) for tensor, chunk in chunks_read(shard)]
            edges += [(shard_key, f"{names[tensor]}.{shard.number}") for tensor in work.results]
    return nodes, list(dict.fromkeys(edges))


def _details(graph: BlockGraph) -> Iterator[tuple[str, Json]]:
    names = _names(graph)
    for tensor in graph.tensors:
        yield names[tensor], {"shape": list(tensor.shape), "dtype": str(tensor.dtype)}
        if isinstance(tensor, StoredTensor):
            for number, chunk in enumerate(tensor.chunks):
                yield f"{names[tensor]}.{number}", {"start": chunk.start.tolist(), "end": chunk.end.tolist()}
    for number, work in enumerate(graph.works):
        for place, shard in enumerate(work.shards):
            if shard.index is not None:
                box = {"start": shard.index.start.tolist(), "end": shard.index.end.tolist()}
                yield f"w{number}.{place}", box | {"bytes": shard.nbytes}


def _names(graph: BlockGraph) -> dict[Tensor, str]:
    return {tensor: f"t{number}" for number, tensor in enumerate(graph.tensors)}


def _box(point: Any) -> str:
    return f"({', '.join(map(str, point.tolist()))})"
