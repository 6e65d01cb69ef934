"""Dead code elimination on block graphs: shards with no path to a sink are removed."""

from sdy.passes.blocks.graph import BlockGraph, Shard, StoredTensor, Tensor, chunks_read, tensors_read


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
