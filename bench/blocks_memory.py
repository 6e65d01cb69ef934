"""Peak memory of programs in blocks, in a process each, beside the limit and a run on small arrays.

    python bench/blocks_memory.py [--megabytes 1024] [--limits 64 256] [--cluster] [PROGRAM...]

Each argument that grows has `--megabytes` MiB and is a file; the result is a Zarr array. The limit holds if the peak is
at most the limit, the peak of a run with arguments of 64 KiB, and 10 %. With `--cluster`, the peak is that of the
larger of two worker processes of a Dask cluster, which spill values between tasks at the limit and the peak
of the small run. The folder of temporary files must have room for the arguments and
twice the results.
"""

# JAX and Dask are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportArgumentType=false

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

from process_memory import MOST, memory

_SMALL = 2**16
"""The bytes of the arguments of the run whose peak is that of the libraries."""

_SPILL = 0.7
"""The part of the memory limit of a worker that its process takes when it spills, by default."""

_WRITTEN = 2**22
"""The elements of an argument that are written at once."""

Shapes = Sequence[tuple[int, ...]]


def product(x: Any, w: Any) -> Any:
    return x @ w


def attention(q: Any, k: Any, v: Any) -> Any:
    import jax
    import jax.numpy as jnp

    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5)
    return jnp.einsum("bqk,bkd->bqd", weights, v)


def softmax_of_columns(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, axis=0)


def softmax_of_rows(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, axis=1)


def strided_convolution(x: Any, kernel: Any) -> Any:
    from jax import lax

    return lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def sort(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sort(x, axis=1)


def gather(x: Any, rows: Any) -> Any:
    return x[rows]


def scan(x: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    def step(state: Any, row: Any) -> tuple[Any, Any]:
        state = jnp.tanh(state + row)
        return state, state * row

    return lax.scan(step, x[0], x)[1]


def transformer(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def normalized(x: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    q, k, v = jnp.einsum("bsd,tde->tbse", normalized(x), qkv)
    x = x + attention(q, k, v) @ out
    return x + jax.nn.gelu(normalized(x) @ up) @ down


def transformer_step(x: Any, *weights: Any) -> Any:
    import jax

    def loss(weights: Any) -> Any:
        return (transformer(x, *weights) ** 2).mean()

    return jax.tree.map(lambda weight, gradient: weight - 1e-3 * gradient, weights, jax.grad(loss)(weights))


def running_sum(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.cumsum(x, axis=0)


def _square(count: int) -> tuple[int, int]:
    side = int(count**0.5)
    return side, count // side


_WEIGHTS = [(3, 128, 128), (128, 128), (128, 512), (512, 128)]

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], Shapes]]] = {
    "product": (product, lambda count: [_square(count), (_square(count)[1], _square(count)[1] // 16)]),
    "attention": (attention, lambda count: [(max(1, count // 2**15), min(512, count // 64), 64)] * 3),
    "softmax of columns": (softmax_of_columns, lambda count: [_square(count)]),
    "softmax of rows": (softmax_of_rows, lambda count: [_square(count)]),
    "strided convolution": (
        strided_convolution,
        lambda count: [(max(1, count // 2**20), min(256, count // 2**12), 256, 16), (3, 3, 16, 16)],
    ),
    "sort": (sort, lambda count: [_square(count)]),
    "gather": (gather, lambda count: [_square(count), _square(count)[:1]]),
    "scan": (scan, lambda count: [_square(count)]),
    "transformer": (transformer, lambda count: [(max(1, count // 2**14), 128, 128), *_WEIGHTS]),
    "transformer step": (transformer_step, lambda count: [(max(1, count // 2**14), 128, 128), *_WEIGHTS]),
    "running sum": (running_sum, lambda count: [_square(count)]),
}
"""Functions, and the shapes of their arguments for a number of elements of the one that grows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--limits", type=int, nargs="*", default=[64, 256], help="memory limits in MiB")
    parser.add_argument("--cluster", action="store_true", help="measure two workers of a Dask cluster")
    parser.add_argument("--one", type=int, help="bytes of the arguments of a program to run in this process")
    parser.add_argument("--worker-megabytes", type=float, help="memory limit in MiB of the workers of `--one`")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            arguments = options.programs[0], options.one, options.limits[0], Path(folder)
            found = _on_cluster(*arguments, options.worker_megabytes) if options.cluster else _here(*arguments)
            print(json.dumps(found))
        return
    print("| program | limit, MiB | empty run, MiB | peak, MiB | of the allowed | seconds |")
    print("| --- | --: | --: | --: | --: | --: |")
    for name in options.programs:
        empty, _ = _measured(name, _SMALL, options.limits[0], options.cluster)
        for limit in options.limits:
            size, of_worker = options.megabytes * 2**20, (limit + empty) / _SPILL
            peak, seconds = _measured(name, size, limit, options.cluster, of_worker)
            allowed = 1.1 * (limit + empty)
            print(f"| {name} | {limit} | {empty:.0f} | {peak:.0f} | {peak / allowed:.2f} | {seconds:.0f} |", flush=True)


def _measured(
    name: str, size: int, limit: int, is_cluster: bool, of_worker: float | None = None
) -> tuple[float, float]:
    """Return the peak memory in MiB and the seconds of a program in a process of its own."""
    words = [sys.executable, __file__, "--one", str(size), "--limits", str(limit), *["--cluster"] * is_cluster]
    words += [] if of_worker is None else ["--worker-megabytes", str(of_worker)]
    found = subprocess.run([*words, "--", name], stdout=subprocess.PIPE, text=True, check=True)
    peak, seconds = json.loads(found.stdout.splitlines()[-1])
    return peak, seconds


def _here(name: str, size: int, limit: int, folder: Path) -> tuple[float, float]:
    import sdy

    arguments = _write_arguments(name, size, folder)
    start = time.perf_counter()
    sdy.blocks.run(PROGRAMS[name][0], *arguments, memory=limit * 2**20, store=folder / "results")
    return memory(MOST), time.perf_counter() - start


def _on_cluster(name: str, size: int, limit: int, folder: Path, of_worker: float | None) -> tuple[float, float]:
    from distributed import Client, LocalCluster

    import sdy

    arguments = _write_arguments(name, size, folder)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit="auto" if of_worker is None else int(of_worker * 2**20),
            local_directory=str(folder),
        ) as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        sdy.blocks.run(PROGRAMS[name][0], *arguments, memory=limit * 2**20, scheduler=client, store=folder / "results")
        seconds = time.perf_counter() - start
        peaks: Any = client.run(memory, MOST)
        return max(peaks.values()), seconds


def _write_arguments(name: str, size: int, folder: Path) -> list[Path]:
    """Write random arguments to files, part by part, and return their paths."""
    import numpy as np

    shapes = PROGRAMS[name][1](size // 4)
    values = np.random.default_rng(0).normal(size=_WRITTEN).astype(np.float32)
    paths: list[Path] = []
    for number, shape in enumerate(shapes):
        is_index = name == "gather" and number == 1
        elements = (np.abs(values) * shapes[0][0] % shapes[0][0]).astype(np.int32) if is_index else values
        paths.append(folder / f"{number}.npy")
        with paths[-1].open("wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": elements.dtype.str, "fortran_order": False, "shape": shape}
            )
            for first in range(0, prod(shape), _WRITTEN):
                elements[: prod(shape) - first].tofile(file)
    return paths


if __name__ == "__main__":
    main()
