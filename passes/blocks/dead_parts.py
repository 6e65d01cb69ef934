"""What no path leads from to the sink is not computed."""

from sdy.passes.blocks.graph import BlockGraph, Shard, StoredTensor, Tensor, chunks_read, tensors_read


def remove_dead_parts(graph: BlockGraph) -> BlockGraph:
    """`graph` without the shards, and the tensors, that nothing observed depends on."""
    needed = [(sink, chunk) for sink in graph.sinks for chunk in range(len(sink.chunks))]
    live: set[Shard] = set()
    while needed:
        shard = graph.writers.get(needed.pop())
        if shard is not None and shard not in live:
            live.add(shard)
            needed += chunks_read(shard)
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
    """How many shards read each chunk."""
    counts: dict[tuple[StoredTensor, int], int] = {}
    for shard in graph.shards():
        for chunk in chunks_read(shard):
            counts[chunk] = counts.get(chunk, 0) + 1
    return counts
