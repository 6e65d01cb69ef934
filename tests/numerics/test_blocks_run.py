"""Programs in blocks from Python: arrays of all kinds, results in Zarr, fusion, restart, and nothing left behind."""

# Dask, Zarr and JAX are only partly typed.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportArgumentType=false
# pyright: reportMissingTypeStubs=false, reportPrivateImportUsage=false, reportOperatorIssue=false

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import dask.array
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import zarr

import sdy
from samples import large
from sdy.passes.blocks.arrays import reader
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph
from sdy.passes.blocks.graph import BlockGraph
from sdy.passes.blocks.schedule import run as run_graph
from sdy.passes.blocks.temporary_folder import temporary_folder
from sdy.passes.blocks.validation import validate
from sdy.tools.sdy_blocks import main as sdy_blocks


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def graph_of(function: Any, *arguments: Any, block_bytes: int) -> BlockGraph:
    graph = block_graph(sdy.from_jax(jax.jit(function), *arguments), within(block_bytes))
    validate(graph)
    return graph


def product(x: Any, y: Any) -> dict[str, Any]:
    return {"product": jnp.tanh(x @ y), "sums": [x.sum(0)]}


@pytest.mark.parametrize("kind", ["numpy", "files", "mapped", "zarr", "dask", "jax"])
def test_arguments_of_every_kind(kind: str, tmp_path: Path) -> None:
    x, y = f32(64, 48), f32(48, 32)
    np.save(tmp_path / "x.npy", x)
    zarr.save(str(tmp_path / "y.zarr"), y)
    arguments: Any = {
        "numpy": (x, y),
        "files": (tmp_path / "x.npy", str(tmp_path / "y.zarr")),
        "mapped": (np.load(tmp_path / "x.npy", "r"), y),
        "zarr": (x, zarr.open_array(str(tmp_path / "y.zarr"))),
        "dask": (dask.array.from_array(x, chunks=(10, 48)), y),
        "jax": (jnp.asarray(x), y),
    }[kind]
    result = sdy.blocks.run(product, *arguments, memory="64K")
    assert np.allclose(result["product"], np.tanh(x @ y), atol=1e-5)
    assert np.allclose(result["sums"][0], x.sum(0), atol=1e-4)


@pytest.mark.parametrize("kind", ["numpy", "files", "mapped", "zarr", "dask"])
def test_arguments_in_the_other_byte_order(kind: str, tmp_path: Path) -> None:
    y, x = f32(48, 32), f32(64, 48).astype(">f4")
    np.save(tmp_path / "x.npy", x)
    zarr.save(str(tmp_path / "x.zarr"), x)
    arguments: Any = {
        "numpy": x,
        "files": tmp_path / "x.npy",
        "mapped": np.load(tmp_path / "x.npy", "r"),
        "zarr": tmp_path / "x.zarr",
        "dask": dask.array.from_array(x, chunks=(10, 48)),
    }[kind]
    result = sdy.blocks.run(product, arguments, y, memory="64K")
    assert np.allclose(result["product"], np.tanh(x @ y), atol=1e-5)


@pytest.mark.parametrize("element_type", ["S3", "M8[s]", "O", "V4", np.longdouble])
def test_elements_that_are_no_numbers_of_jax(element_type: Any) -> None:
    with pytest.raises(ValueError, match=r"argument 1 has elements of type .*, which JAX does not compute with"):
        sdy.blocks.run(jnp.add, f32(3), np.zeros(3).astype(element_type))


def test_static_arguments() -> None:
    def reshaped(rows: int, x: Any, function: Any) -> Any:
        return function(x).reshape(rows, -1)

    x = f32(64, 48)
    for function in (reshaped, jax.jit(reshaped, static_argnums=(0, 2))):
        assert np.allclose(
            sdy.blocks.run(function, 32, x, jnp.tanh, static_argnums=(0, -1)), np.tanh(x).reshape(32, -1)
        )
    with pytest.raises(TypeError, match="it has no static ones"):
        sdy.blocks.run(sdy.from_jax(jnp.tanh, x), x, static_argnums=0)


def test_constants_are_read_by_block(tmp_path: Path) -> None:
    """Arrays that a function captures may be larger than the limit; another constant is another program."""
    x, weights = f32(64, 96), f32(96, 96)

    def run(weights: Any) -> Any:
        function = lambda x: {"product": x @ weights + weights[0], "weights": weights}  # noqa: E731
        return sdy.blocks.run(function, x, memory="16K", store=tmp_path / "out.zarr")

    for each in (weights, weights + 1):
        result = run(each)
        assert np.allclose(result["product"][...], x @ each + each[0], atol=1e-4)
        assert (result["weights"][...] == each).all()


def test_random_keys() -> None:
    """A key is an argument as for `jax.jit`; one that a function returns is its integers."""
    key = jax.random.key(3)
    keys, normal = sdy.blocks.run(
        lambda of: (jax.random.split(of["key"]), jax.random.normal(of["key"], (9,))), {"key": key}
    )
    assert (keys == jax.random.key_data(jax.random.split(key))).all()
    assert np.allclose(normal, jax.random.normal(key, (9,)))


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_files_that_are_no_arrays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npy is not an \.npy file of numbers"):
        sdy.blocks.run(jnp.tanh, tmp_path / "x.npy")


def test_paths_that_are_no_zarr_arrays(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "group", mode="w")
    np.savez(tmp_path / "arrays.npz", x=f32(3))
    for name in ("group", "arrays.npz"):
        with pytest.raises(ValueError, match=rf"{name} is not an \.npy file or a Zarr array"):
            sdy.blocks.run(jnp.tanh, tmp_path / name)
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        sdy.blocks.run(jnp.tanh, tmp_path / "missing")


def test_chunks_of_unknown_sizes() -> None:
    x = dask.array.from_array(f32(9), chunks=4)
    with pytest.raises(ValueError, match="argument 0 has chunks of unknown sizes"):
        sdy.blocks.run(jnp.tanh, x[x > 0])


def test_an_address_needs_a_store() -> None:
    with pytest.raises(ValueError, match="needs `store`"):
        sdy.blocks.run(jnp.tanh, f32(3), scheduler="tcp://localhost:8786")


@pytest.mark.parametrize("sizes", [{"memory": 0}, {"memory": -1}, {"memory": "0M"}, {"block_bytes": 0}], ids=str)
def test_a_size_that_is_none(sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be at least 1 byte|is not a size"):
        sdy.blocks.run(jnp.tanh, np.ones(4, np.float32), **sizes)


ONE_VALUE_TWICE: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x @ x,
    "product with its transpose": lambda x: x @ x.T,
    "product and sum": lambda x: x @ x + x,
    "sum with its transpose": lambda x: x + x.T,
    "contraction": lambda x: jnp.einsum("ij,jk,kl->il", x, x, x),
    "concatenation": lambda x: jnp.concatenate([x, x, x[::2]]) * 2,
    "update": lambda x: jax.lax.dynamic_update_slice(x, x[:7, :5], (3, 2)),
    "rows": lambda x: x[jnp.argsort(x[:, 0])] + x,
    "branches": lambda x: jnp.where(x > x[:, :1], x, x.T),
}


@pytest.mark.parametrize("name", ONE_VALUE_TWICE)
def test_operations_read_different_regions_of_one_value(name: str) -> None:
    x = f32(64, 64)
    result = sdy.blocks.run(ONE_VALUE_TWICE[name], x, memory="64K", block_bytes="4K")
    assert np.allclose(result, np.asarray(ONE_VALUE_TWICE[name](jnp.asarray(x))), rtol=1e-4, atol=1e-4)


def test_results_in_zarr_of_a_type_that_zarr_does_not_have(tmp_path: Path) -> None:
    x = f32(64, 48).astype(ml_dtypes.bfloat16)
    stored = sdy.blocks.run(lambda x: x * 2, x, memory="4K", store=tmp_path / "out.zarr")
    assert stored.dtype == np.uint16
    (result,) = sdy.blocks.run(lambda x: [x + 0], stored, memory="4K")
    assert (result == x * 2).all()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    with pytest.raises(FileExistsError, match="is not a store of results"):
        sdy.blocks.run(lambda x: x * 2, x, store=tmp_path / "other")


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_is_one_group_along_either_axis(axis: int) -> None:
    x = f32(1024, 1024)
    graph = graph_of(lambda x: jax.nn.softmax(x, axis), x, block_bytes=2**18)
    (work,) = graph.works
    assert work.shards[0].index is not None
    assert work.shards[0].index.shape[axis] == 1024
    (result,), statistics = run_graph(graph, [x], 2**24)
    assert statistics.spilled_bytes == statistics.loaded_bytes == 0
    assert np.allclose(result, jax.nn.softmax(x, axis), atol=1e-6)


def test_elementwise_operations_are_one_task_a_block() -> None:
    x = f32(64, 64)
    graph = graph_of(lambda x: jnp.cos(jnp.tanh(jnp.cos(jnp.tanh(x)))), x, block_bytes=4096)
    assert len(graph.works) == 1
    assert len(set(graph.works[0].programs)) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.cos(x) + jnp.cos(x).T,
        lambda x: jnp.tanh(x) @ jnp.tanh(x).T,
        lambda x: jnp.cos(x)[1:] - jnp.cos(x)[:-1],
        lambda x: jnp.cos(x)[::-1] * jnp.arange(x.shape[1]),
        lambda x: jnp.cumsum(jnp.cos(x), 0),
        lambda x: (jnp.cos(x), jnp.cos(x).sum(0), x[::2].T),
    ],
    ids=["transpose", "gram", "shifted", "reversed", "running sum", "several results"],
)
def test_groups_whose_operations_read_each_other_otherwise(function: Any) -> None:
    """A class of axes that moves along two dimensions of one operation would leave all but the diagonal out."""
    x = f32(16, 16)
    graph = graph_of(function, x, block_bytes=700)
    results, _ = run_graph(graph, [x], 2**20)
    for result, expected in zip(results, jax.tree.leaves(function(x)), strict=True):
        assert np.allclose(result, expected, atol=1e-4)


def test_chunks_of_results_that_are_views() -> None:
    """They do not depend on the chunks that they read: the scalars had a block for each element of the result."""
    graph = graph_of(lambda x: (jnp.ones((64, 64)), jnp.broadcast_to(x.sum(), (64, 64))), f32(64), block_bytes=2**12)
    assert [len(sink.chunks.start) for sink in graph.sinks] == [8, 8]


def test_columns_of_a_mapped_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x := f32(3000, 700))
    found = reader(tmp_path / "x.npy").read([5, 3], [2990, 9])
    assert np.array_equal(found, x[5:2990, 3:9])


END_AT_THIRD_CHUNK = """
import itertools, os, sys
import jax, jax.numpy as jnp, numpy as np, sdy.blocks
from sdy.passes.blocks import chunk_store, memory, schedule
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph
numbers = itertools.count(1)
def ending(write):
    def write_and_end(*arguments):
        if next(numbers) == 3:
            os.kill(os.getpid(), int(sys.argv[1]))
        return write(*arguments)
    return write_and_end
x = np.ones((64, 64), np.float32)
"""
WRITE_RESULTS = """
chunk_store.write_chunk = ending(chunk_store.write_chunk)
sdy.blocks.run(lambda x: jnp.tanh(x) @ x, x, memory='64K', block_bytes='3K', store='out.zarr')
"""
SPILL_CHUNKS = """
memory.SpillFile.write = ending(memory.SpillFile.write)
module = sdy.from_jax(jax.jit(lambda x: jnp.tanh(x) @ jnp.tanh(x).T), x)
schedule.run(block_graph(module, within(3072)), [x], 2**13, None)
"""


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        pytest.param(WRITE_RESULTS, signal.SIGTERM, marks=large),
        (WRITE_RESULTS, signal.SIGKILL),
        (SPILL_CHUNKS, signal.SIGTERM),
    ],
    ids=["results, SIGTERM", "results, SIGKILL", "intermediate values, SIGTERM"],
)
def test_a_program_ended_by_a_signal_goes_on(statement: str, number: signal.Signals, tmp_path: Path) -> None:
    """A rerun goes on from the results that are stored, and no temporary file is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", END_AT_THIRD_CHUNK + statement, str(int(number))],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    assert ended.returncode == -number
    assert not list(temporary.iterdir())
    x = np.ones((64, 64), np.float32)
    result = sdy.blocks.run(lambda x: jnp.tanh(x) @ x, x, memory="64K", block_bytes="3K", store=tmp_path / "out.zarr")
    assert np.allclose(result[...], np.tanh(x) @ x, rtol=1e-4)
    assert {path.name for path in (tmp_path / "out.zarr").iterdir()} == {"result0", "zarr.json"}


def test_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Folders of running processes stay."""
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from sdy.passes.blocks.temporary_folder import temporary_folder\n"
        "with temporary_folder('chunks-', Path(sys.argv[1])):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (abandoned,) = tmp_path.iterdir()
    with temporary_folder("chunks-", tmp_path) as first, temporary_folder("chunks-", tmp_path) as second:
        assert not abandoned.exists()
        assert {*tmp_path.iterdir()} == {first, second}


def test_sigterm_while_a_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def interrupted(folder: Path, ignore_errors: bool) -> None:
        monkeypatch.setattr(shutil, "rmtree", remove)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(SystemExit), temporary_folder("chunks-", tmp_path) as folder:
        (folder / "chunk").touch()
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_cluster(tmp_path: Path) -> None:
    """Results are `dask.array`s, which go on in Dask, or Zarr arrays; a client or an address names the cluster."""
    distributed: Any = pytest.importorskip("distributed")
    x, y = f32(64, 48), f32(48, 32)
    np.save(tmp_path / "x.npy", x)
    program = tmp_path / "program.mlir"
    program.write_text(sdy.text.format(sdy.from_jax(jax.jit(product), x, y)))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy = sdy.blocks.run(product, x, y, memory="32K", scheduler=client)
        assert np.allclose((lazy["product"] + 1).compute(), np.tanh(x @ y) + 1, atol=1e-5)
        address = cluster.scheduler_address
        stored = sdy.blocks.run(
            product, tmp_path / "x.npy", y, memory="32K", scheduler=address, store=tmp_path / "out.zarr"
        )
        assert np.allclose(stored["product"][...], np.tanh(x @ y), atol=1e-5)
        assert np.allclose(stored["sums"][0][...], x.sum(0), atol=1e-4)
        assert sdy_blocks([str(program), "--memory-limit", "32K", "--check", "--scheduler", address]) == 0


@large
def test_two_programs_while_a_worker_is_killed(tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    x, y = f32(2048, 1024), f32(1024, 512)
    np.save(tmp_path / "x.npy", x)
    results: dict[str, Any] = {}
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def run(name: str, function: Any) -> None:
            results[name] = sdy.blocks.run(
                function, tmp_path / "x.npy", y, memory="2M", scheduler=client, store=tmp_path / f"{name}.zarr"
            )

        functions = {"tanh": lambda x, y: jnp.tanh(x @ y), "softmax": lambda x, y: jax.nn.softmax(x, 0) @ y}
        threads = [Thread(target=run, args=each) for each in functions.items()]
        for thread in threads:
            thread.start()
        while not any((tmp_path / f"{name}.zarr" / "result0" / "c").exists() for name in functions):
            time.sleep(0.05)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        for thread in threads:
            thread.join()
    for name, function in functions.items():
        assert np.allclose(results[name][...], function(x, y), atol=1e-3)
