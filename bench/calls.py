"""Calls of a compiled function: of sdy.jit, of sdy.compile and of jax.jit, side by side.

    python bench/calls.py [ARRAYS ...]          1 40 by default

The function adds one to each of so many arrays of 256 bytes, split over 8 virtual CPU devices: hardly any work, so that
what is seen is what a call costs. `sdy.jit` looks at the shardings of the arrays unless all are given as in_shardings.
The four take turns, and each time is the least of many. The last column is what a call costs more than one of jax.jit.
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
    parser = argparse.ArgumentParser(description="Compare what a call costs with jax.jit.")
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
    """The arrays, and the functions to call with them."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("x"))
    arrays = [jax.device_put(np.ones((8, 8), np.float32), split)] * count
    module = sdy.from_jax(jax.jit(add_one), arrays)
    sdy.propagate(module)
    program = sdy.compile(module)
    return arrays, {
        BASE: jax.jit(add_one),
        "sdy.jit": sdy.jit(add_one),
        "sdy.jit, in_shardings": sdy.jit(add_one, in_shardings=split),
        "sdy.compile": lambda given: program(*given),
    }


def least_seconds(arrays: list[jax.Array], functions: dict[str, Callable[[Any], Any]]) -> dict[str, float]:
    """The least time of a call of each function, of several in a row that are waited for together."""
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(TURNS):
        for name, function in functions.items():
            start = perf_counter()
            made: Any = None
            for _ in range(CALLS):
                made = function(arrays)
            jax.block_until_ready(made)
            least[name] = min(least[name], (perf_counter() - start) / CALLS)
    return least


if __name__ == "__main__":
    main()
