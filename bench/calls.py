"""Call overhead of compiled functions: sdy.jit, sdy.compile and jax.jit.

    python bench/calls.py [ARRAYS ...]          1 40 by default

The function adds one to each of ARRAYS arrays of 256 bytes, sharded over 8 virtual CPU devices, so that the overhead
dominates. `sdy.jit` inspects the shardings of the arrays unless `in_shardings` is complete. The four take turns; each
time is the minimum of many. The last column is the difference from a call of jax.jit.
"""

import argparse
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import jax

jax.config.update("jax_num_cpu_devices", 8)

import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import sdy  # noqa: E402

TURNS = 200
CALLS = 20
BASE = "jax.jit"


def add_one(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(array + 1 for array in arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the call overhead with jax.jit.")
    parser.add_argument("arrays", nargs="*", type=int, default=[1, 40])
    table = Table()
    for heading in ("arrays", "", "calls per second", "ratio", "more than jax.jit: µs"):
        table.add_column(heading, justify="right" if heading else "left")
    for count in parser.parse_args().arrays:
        seconds = least_seconds(*callables(count))
        for name, time in seconds.items():
            more = (time - seconds[BASE]) * 1e6
            table.add_row(f"{count}", name, f"{1 / time:,.0f}", f"{seconds[BASE] / time:.2f}", f"{more:.1f}")
        table.add_section()
    Console().print(table)


def callables(count: int) -> tuple[list[jax.Array], dict[str, Callable[[Any], Any]]]:
    """Return the arrays, and the functions to call with them."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    sharded = NamedSharding(mesh, PartitionSpec("x"))
    arrays = [jax.device_put(np.ones((8, 8), np.float32), sharded)] * count
    module = sdy.from_jax(jax.jit(add_one), arrays)
    sdy.propagate(module)
    program = sdy.compile(module)
    return arrays, {
        BASE: jax.jit(add_one),
        "sdy.jit": sdy.jit(add_one),
        "sdy.jit, in_shardings": sdy.jit(add_one, in_shardings=sharded),
        "sdy.compile": lambda given: program(*given),
    }


def least_seconds(arrays: list[jax.Array], functions: dict[str, Callable[[Any], Any]]) -> dict[str, float]:
    """Return the minimal seconds per call of each function, in batches of asynchronous calls."""
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(TURNS):
        for name, function in functions.items():
            start = perf_counter()
            results: Any = None
            for _ in range(CALLS):
                results = function(arrays)
            jax.block_until_ready(results)
            least[name] = min(least[name], (perf_counter() - start) / CALLS)
    return least


if __name__ == "__main__":
    main()
