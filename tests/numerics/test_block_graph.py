"""Block graphs: their nodes, their results compared with the unpartitioned program's, and their memory."""

import json
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import sdy
from samples import covering, sample
from sdy.blocks import block_operation
from sdy.box import Box
from sdy.diagnostics import DiagnosticError
from sdy.passes.blocks import schedule
from sdy.passes.blocks.block_shapes import of_shardings, within
from sdy.passes.blocks.build import block_graph
from sdy.passes.blocks.dask_graph import dask_graph
from sdy.passes.blocks.drawing import to_dot, to_json
from sdy.passes.blocks.graph import BlockGraph, Shard, StoredTensor, TensorCopy, TensorView, chunks_read
from sdy.passes.blocks.kernel import run_shard
from sdy.passes.blocks.probe import Probe, probe, probe_per_step
from sdy.passes.blocks.schedule import MemoryLimitError, run
from sdy.passes.blocks.split_reductions import SplitReductionsPass
from sdy.passes.blocks.validation import BlockGraphError, validate
from sdy.tools.sdy_blocks import main as sdy_blocks
from sdy.type_helpers import Function


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def graph_of(function: Function[Any], *arguments: Any, block_bytes: int, parts: int = 0) -> BlockGraph:
    module = sdy.from_jax(jax.jit(function), *arguments)
    if parts:
        SplitReductionsPass(parts).apply(sdy.text.context(), module)
    graph = block_graph(module, within(block_bytes))
    validate(graph)
    return graph


def normalised(x: jax.Array) -> jax.Array:
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def convolution(x: jax.Array, k: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        x, k, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def grouped(x: jax.Array, k: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
    )


PROGRAMS: dict[str, tuple[Function[Any], tuple[Any, ...]]] = {
    "mlp": (lambda x, a, b: jnp.tanh(x @ a) @ b, (f32(32, 48), f32(48, 40), f32(40, 16))),
    "layer norm": (normalised, (f32(64, 32),)),
    "attention": (
        lambda q, k, v: jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), v),
        (f32(4, 16, 8), f32(4, 16, 8), f32(4, 16, 8)),
    ),
    "convolution": (convolution, (f32(2, 16, 16, 3), f32(3, 3, 3, 8))),
    "transposed convolution": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
        (f32(2, 8, 8, 3), f32(3, 3, 3, 4)),
    ),
    "grouped convolution": (grouped, (f32(2, 12, 12, 4), f32(3, 3, 2, 8))),
    "pooling": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
        (f32(2, 16, 16, 4),),
    ),
    "lookup": (lambda table, i: table[i % 40], (f32(40, 16), np.arange(60, dtype=np.int32))),
    "views": (
        lambda x: jnp.concatenate([x[::2, ::-1].T, lax.pad(x, 1.5, ((1, 2, 0), (3, -1, 0)))[:16, :10]], 1) * 2,
        (f32(16, 16),),
    ),
    "comparator of a call": (lambda x: lax.approx_max_k(x, 4)[0], (f32(32, 16),)),
    "part of a view": (lambda x: jnp.partition(x, 4, axis=0)[:4], (f32(32, 16),)),
    "pad of a number": (lambda x: lax.pad(jnp.sum(x[0]), np.float32(0), ()) + x, (f32(16, 16),)),
    "whole updates": (lambda x: jnp.asarray(x).at[...].add(2 * x).at[:].multiply(x).at[:, :].max(x), (f32(16, 16),)),
    "reshapes": (lambda x: x.reshape(4, 8, 2, 8).sum(1).reshape(8, 8), (f32(32, 16),)),
    "loop": (lambda x: jnp.tanh(lax.fori_loop(0, 3, lambda _, y: y @ x, x)), (f32(16, 16) / 4,)),
    "sorted": (lambda x: jnp.sort(x, 0) + 1, (f32(16, 16),)),
}


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=4))
def test_in_blocks_as_whole(name: str):
    function, arguments = PROGRAMS[name]
    graph = graph_of(function, *arguments, block_bytes=max(argument.nbytes for argument in arguments) - 1)
    assert max(len(work.shards) for work in graph.works) > 1
    (result,), statistics = run(graph, arguments, memory_limit=2**20)
    assert np.allclose(result, function(*arguments), atol=1e-4)
    assert statistics.shards == sum(1 for _ in graph.shards())


def test_results_go_through_files_in_little_memory(tmp_path: Path):
    x, a, b = f32(256, 256), f32(256, 256), f32(256, 256)

    def function(x: Any, a: Any, b: Any) -> Any:
        return jnp.tanh(x @ a) @ b

    graph = graph_of(function, x, a, b, block_bytes=2**15, parts=8)
    limit = 2**17
    (result,), statistics = run(graph, (x, a, b), limit, tmp_path / "out.zarr")
    assert statistics.most_bytes <= limit < 4 * result.nbytes
    assert statistics.spilled_bytes > 0
    assert isinstance(result, zarr.Array)
    assert np.allclose(np.asarray(result), function(x, a, b), atol=1e-2)
    assert {path.name for path in (tmp_path / "out.zarr").iterdir()} == {"result0", "zarr.json"}


def test_operands_of_ten_times_the_memory(tmp_path: Path):
    """Both operands are files of 16 MiB; at most 3 MiB are resident, besides memory maps."""
    size = 2048
    for number in range(2):
        array = np.lib.format.open_memmap(tmp_path / f"{number}.npy", "w+", np.float32, (size, size))
        array[...] = f32(size, size)
    x, w = (np.load(tmp_path / f"{number}.npy", "r") for number in range(2))
    limit = 3 * 2**20
    assert x.nbytes + w.nbytes > 10 * limit
    graph = graph_of(
        lambda x, w: x @ w,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        jax.ShapeDtypeStruct(w.shape, w.dtype),
        block_bytes=limit // 2,
        parts=4,
    )
    (result,), statistics = run(graph, (x, w), limit, tmp_path / "out.zarr")
    assert statistics.most_bytes <= limit
    assert np.abs(result[...] - x @ w).max() < 1e-2


@given(st.integers(2, 9), st.integers(1, 9), st.integers(2, 9), st.integers(60, 400))
def test_matmuls_of_any_shape(m: int, k: int, n: int, block_bytes: int):
    x, w = f32(m, k), f32(k, n)
    graph = graph_of(lambda x, w: (x @ w).T, x, w, block_bytes=max(block_bytes, 8 * k + 4))
    (result,), _ = run(graph, (x, w), 2**20)
    assert np.allclose(result, (x @ w).T, atol=1e-5)


def test_two_programs_on_a_cluster_of_which_a_worker_is_killed():
    """The scheduler computes the tasks of the killed worker again."""
    distributed: Any = pytest.importorskip("distributed")
    x, w = f32(32, 48), f32(48, 40)
    functions: list[Function[Any]] = [lambda x, w: jnp.tanh(x @ w).T, lambda x, w: jnp.cos(x @ w)]
    programs = [dask_graph(graph_of(function, x, w, block_bytes=6000), (x, w)) for function in functions]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        started = [client.get(tasks, keys, sync=False) for tasks, keys in programs]
        os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
        results = client.gather(started)
    for (result,), expected in zip(results, [np.tanh(x @ w).T, np.cos(x @ w)], strict=True):
        assert np.allclose(result, expected, atol=1e-5)


def test_dask_keys_are_of_the_program_and_its_arguments(tmp_path: Path) -> None:
    """A cluster computes tasks of equal keys once."""
    np.save(tmp_path / "x.npy", f32(16, 16))

    def keys(function: Function[Any], block_bytes: int, *arguments: Any) -> set[str]:
        graph = graph_of(function, f32(16, 16), block_bytes=block_bytes)
        return {str(key) for key in dask_graph(graph, arguments)[0]}

    programs = [
        keys(lambda x: x + x, 300, f32(16, 16)),
        keys(lambda x: x * x, 300, f32(16, 16)),
        keys(lambda x: x + x, 600, f32(16, 16)),
        keys(lambda x: x + x, 300, 2 * f32(16, 16)),
        keys(lambda x: x[1:] + x[:-1], 300, f32(16, 16)),
        keys(lambda x: x[2:] + x[:-2], 300, f32(16, 16)),
        keys(lambda x: x + x, 300, tmp_path / "x.npy"),
    ]
    assert len(set[str]().union(*programs)) == sum(map(len, programs))
    assert keys(lambda x: x + x, 300, f32(16, 16)) == programs[0]


@covering
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("interior", [0, 1, 2])
@pytest.mark.parametrize(("low", "high"), [(0, 3), (2, 0), (-1, 2), (2, -1)])
def test_pads_with_interior_and_negative_padding(size: int, interior: int, low: int, high: int) -> None:
    x = f32(size, 4)
    module = sdy.from_jax(jax.jit(lambda x: lax.pad(x, np.float32(9), ((low, high, interior), (1, -1, 1)))), x)
    for block_bytes in (40, 120):
        graph = block_graph(module, within(block_bytes))
        validate(graph)
        (result,), _ = run(graph, (x,), 2**20)
        assert np.array_equal(result, lax.pad(x, np.float32(9), ((low, high, interior), (1, -1, 1))))


def small_graph() -> BlockGraph:
    """Return the graph of x (8, 8) -> negate, in two blocks -> transpose -> copy -> result."""
    return graph_of(lambda x: (-x).T, f32(8, 8), block_bytes=300)


def test_kinds_of_nodes():
    """The kinds in the design document: source, sink, tensors, block operations, shards, chunks, views and copies."""
    graph = small_graph()
    assert [tensor.shape for tensor in graph.sources] == [(8, 8)]
    source, negated, transposed, copied = graph.tensors
    assert isinstance(source, StoredTensor)
    assert list(source.chunks) == [Box.of_shape((8, 8))]
    assert isinstance(negated, StoredTensor)
    assert [chunk.shape.tolist() for chunk in negated.chunks] == [[4, 8], [4, 8]]
    assert isinstance(transposed, TensorView)
    assert transposed.parts[0].source is negated
    assert graph.sinks == (copied,)
    negation, copy = graph.works
    assert negation.name == "stablehlo.negate"
    assert isinstance(copy, TensorCopy)
    kinds = {node["kind"] for node in to_json(graph)["nodes"]}
    assert kinds == {"Source", "Sink", "Tensor", "TensorChunk", "TensorView", "TensorCopy", "BlockOp", "BlockShard"}
    assert json.loads(json.dumps(to_json(graph))) == to_json(graph)
    drawing = to_dot(graph)
    assert drawing.startswith("digraph")
    assert all(work.name in drawing for work in graph.works)


def test_blocks_of_the_devices_of_a_mesh():
    """Each shard of a tensor is a block; a contracted dimension is in one block."""
    module = sdy.parse("""
      sdy.mesh @mesh = <["x"=4, "y"=2]>
      func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                      %b: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x16xf32> {
        %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
        %1 = stablehlo.tanh %0 : tensor<8x16xf32>
        return %1 : tensor<8x16xf32>
      }""")
    sdy.propagate(module)
    graph = block_graph(module, of_shardings)
    validate(graph)
    assert [(work.name, len(work.shards)) for work in graph.works] == [("stablehlo.dot + tanh", 8)]
    a, b = f32(8, 64), f32(64, 16)
    (result,), _ = run(graph, (a, b), 2**16)
    assert np.allclose(result, np.tanh(a @ b), atol=1e-5)


def test_dead_operations_and_unread_blocks_are_removed():
    """Operations without a path to the sink are removed, and so are blocks that nothing reads."""

    def function(x: jax.Array) -> jax.Array:
        jnp.exp(x)
        return jnp.sin(x)[:2]

    graph = graph_of(function, f32(8, 8), block_bytes=100)
    assert [work.name for work in graph.works] == ["stablehlo.sine", "copy"]
    sine = graph.works[0]
    assert isinstance(sine.results[0], StoredTensor)
    assert len(sine.shards) == len(sine.results[0].chunks) // 4


def test_a_shared_view_is_copied_once():
    graph = graph_of(lambda x: [x.T] * 2, f32(8, 8), block_bytes=300)
    assert len([work for work in graph.works if isinstance(work, TensorCopy)]) == 1


def test_graphs_that_cannot_be_run():
    graph = small_graph()
    negation = graph.works[0]
    negation.shards.append(negation.shards[0])
    with pytest.raises(BlockGraphError, match=r"chunk 0 of %\d is written twice"):
        validate(replace(graph))
    graph = small_graph()
    graph.works[0].shards.pop()
    with pytest.raises(BlockGraphError, match=r"chunk 1 of %\d, which a result needs, is written by nothing"):
        validate(replace(graph))
    graph = small_graph()
    transposed = graph.tensors[2]
    assert isinstance(transposed, TensorView)
    transposed.parts *= 2
    with pytest.raises(BlockGraphError, match="do not cover each of its elements once"):
        validate(replace(graph))
    graph = small_graph()
    view, copy = graph.tensors[2], graph.works[1]
    assert isinstance(view, TensorView)
    view.parts = (replace(view.parts[0], source=copy.results[0]),)
    with pytest.raises(BlockGraphError, match=r"depends on .*, its own result or a later one"):
        validate(replace(graph))


def test_blocks_that_do_not_fit():
    with pytest.raises(DiagnosticError, match=r"its smallest blocks take 260 bytes, more than the limit of 100"):
        graph_of(lambda x, w: x @ w, f32(8, 32), f32(32, 8), block_bytes=100)
    graph = small_graph()
    with pytest.raises(
        MemoryLimitError, match=r"takes 256 bytes for what it reads and writes, more than the limit of 200"
    ):
        run(graph, (f32(8, 8),), 200)
    with pytest.raises(
        ValueError, match=re.escape("%arg0 must have shape (8, 8) and elements of type float32, not (4, 4)")
    ):
        run(graph, (f32(4, 4),), 2000)
    with pytest.raises(DiagnosticError, match="cannot be computed independently"):
        block_graph(sdy.from_jax(jax.jit(jnp.matmul), f32(4, 4), f32(4, 4)), lambda op, blocks: (2, 2, 2))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    program = tmp_path / "program.mlir"
    program.write_text(sdy.format(sdy.from_jax(jax.jit(PROGRAMS["mlp"][0]), *PROGRAMS["mlp"][1])))
    assert sdy_blocks([str(program), "--memory-limit", "16K", "--split-reductions", "2", "--check"]) == 0
    shown = capsys.readouterr().out
    assert "stablehlo.dot_general" in shown
    assert float(re.findall(r"largest difference .*: (\S+) \(", shown)[0]) < 1e-4
    assert sdy_blocks([str(program), "--json", "-", "--memory-limit", "16K"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"]
    assert sdy_blocks([str(program), "--memory-limit", "8"]) == 2
    assert "its smallest blocks take" in capsys.readouterr().err


def test_command_tells_a_wrong_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def one_too_many(shard: Shard, operands: Sequence[Any]) -> list[Any]:
        return [array + 1 for array in run_shard(shard, operands)]

    program = tmp_path / "program.mlir"
    program.write_text(sdy.format(sdy.from_jax(jax.jit(jnp.tanh), f32(8, 32))))
    arguments = [str(program), "--memory-limit", "2K", "--check"]
    assert sdy_blocks(arguments) == 0
    monkeypatch.setattr(schedule, "run_shard", one_too_many)
    assert sdy_blocks(arguments) == 1
    assert "error: 'stablehlo.tanh' op result 0 is wrong: element [0, 0] is " in capsys.readouterr().out


def test_probes_of_sample_blocks():
    """A block of twice the length takes more time and memory; an axis that cannot be longer takes neither."""
    module = sdy.from_jax(jax.jit(lambda x, w: x @ w), f32(256, 32), f32(32, 256))
    op = next(op for op in module.walk() if op.name == "stablehlo.dot_general")
    blocks = block_operation(op)
    assert blocks is not None
    block = probe(op, blocks, (64, 64, 32))
    assert block.seconds > 0
    assert block.intermediate_bytes >= 0
    assert probe_per_step(op, blocks, (64, 64, 32))[2] == Probe(0.0, 0)


def test_contraction_as_a_product_and_a_sum():
    """A matmul written as a product (batch, in, out), then a sum along in, as in the design document.

    The sum may not be split along in; fused with it, the product is stored nowhere.
    """
    x, w = f32(10, 6), f32(6, 3)
    graph = graph_of(lambda x, w: (x[:, :, None] * w[None, :, :]).sum(1), x, w, block_bytes=600)
    (fused,) = graph.works
    assert fused.name == "stablehlo.multiply + reduce"
    assert fused.results[0].shape == (10, 3)
    assert all(set(chunks_read(shard)) == {(source, 0) for source in graph.sources} for shard in fused.shards)
    assert len(fused.shards) > 1
    (result,), _ = run(graph, (x, w), 2**16)
    assert np.allclose(result, x @ w, atol=1e-5)


def test_split_reduction_has_partial_sums_and_a_second_stage():
    """If the contracted dimension is one block, the operation stays fused; else its partial sums have an index axis."""
    x, w = f32(8, 64), f32(64, 8)
    whole = graph_of(lambda x, w: x @ w, x, w, block_bytes=2**16)
    assert [work.name for work in whole.works] == ["stablehlo.dot_general"]
    cut = graph_of(lambda x, w: x @ w, x, w, block_bytes=2000, parts=4)
    partial, total = (work for work in cut.works if work.name != "stablehlo.constant")
    assert (partial.name, partial.results[0].shape) == ("stablehlo.dot_general", (4, 8, 8))
    assert (total.name, total.results[0].shape) == ("stablehlo.reduce", (8, 8))
