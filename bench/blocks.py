"""Programs in blocks beside dask.array and cubed: processor seconds, and bytes through storage.

    python bench/blocks.py --size 4096 --chunk 128

Each program runs in this process. dask.array and cubed have chunks of `--chunk` squared elements; a block takes five
times the bytes of a chunk: for two operands of a product, the sum before, the product, and the sum.
"""

# Dask, Zarr and JAX are only partly typed.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportArgumentType=false
# pyright: reportMissingTypeStubs=false, reportPrivateImportUsage=false, reportOperatorIssue=false

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import jax
import jax.numpy as jnp
import numpy as np

import sdy
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph
from sdy.passes.blocks.fit_blocks import fit_blocks
from sdy.passes.blocks.schedule import run


def chain(np_: Any, x: Any, y: Any) -> Any:
    for _ in range(5):
        x = np_.tanh(np_.cos(x))
    return x


def softmax(np_: Any, x: Any, y: Any) -> Any:
    e = np_.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def products(np_: Any, x: Any, y: Any) -> Any:
    return (x @ y) @ y


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {"elementwise": chain, "softmax": softmax, "products": products}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--chunk", type=int, default=128)
    parser.add_argument("--block-bytes", type=int, default=0, help="bytes of a block (default: 5 chunks)")
    parser.add_argument("--memory", type=int, default=2**30)
    parser.add_argument("--cubed", action="store_true", help="run cubed, too, if it is installed")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    options = parser.parse_args()
    x = np.random.default_rng(0).normal(size=(options.size, options.size)).astype(np.float32) / options.size**0.5
    for name in options.programs:
        ours = _blocks(PROGRAMS[name], x, options)
        theirs = _dask(PROGRAMS[name], x, options.chunk)
        print(f"{name}: sdy {ours}; dask {theirs}", end="", flush=True)
        print(f"; cubed {_cubed(PROGRAMS[name], x, options)}" if options.cubed else "", flush=True)


def _blocks(program: Callable[[Any, Any, Any], Any], x: Any, options: argparse.Namespace) -> str:
    start = time.process_time()
    module = sdy.from_jax(jax.jit(lambda x, y: program(jnp, x, y), keep_unused=True), x, x)
    limit = options.block_bytes or 5 * x.itemsize * options.chunk**2
    fit_blocks(module, limit)
    graph = block_graph(module, within(limit))
    _, statistics = run(graph, [x, x], options.memory)
    return (
        f"{time.process_time() - start:.2f} s, {statistics.shards:,} blocks, "
        f"{statistics.spilled_bytes + statistics.loaded_bytes:,} bytes through storage"
    )


def _dask(program: Callable[[Any, Any, Any], Any], x: Any, chunk: int) -> str:
    start = time.process_time()
    array = da.from_array(x, chunks=(chunk, chunk))
    (result,) = dask.optimize(program(da, array, array))
    tasks = len(dict(result.__dask_graph__()))
    with dask.config.set(scheduler="synchronous"):
        result.compute()
    return f"{time.process_time() - start:.2f} s, {tasks:,} tasks"


def _cubed(program: Callable[[Any, Any, Any], Any], x: Any, options: argparse.Namespace) -> str:
    # Cubed is no dependency of the tests, where types are checked.
    cubed, xp = import_module("cubed"), import_module("cubed.array_api")
    with tempfile.TemporaryDirectory() as folder:
        spec = cubed.Spec(work_dir=folder, allowed_mem=options.memory)
        start = time.process_time()
        array = cubed.from_array(x, chunks=(options.chunk, options.chunk), spec=spec)
        if program is softmax:
            e = xp.exp(array - xp.max(array, axis=1, keepdims=True))
            result = e / xp.sum(e, axis=1, keepdims=True)
        else:
            result = program(xp, array, array)
        result.compute()
        written = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        return f"{time.process_time() - start:.2f} s, {written:,} bytes"


if __name__ == "__main__":
    main()
