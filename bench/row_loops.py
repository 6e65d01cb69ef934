"""Loops over sharded rows that each device ends with its own: times beside `jax.jit`, which waits for all rows.

    python bench/row_loops.py [--rows N] [--turns N]

Each program is a `jax.vmap` of a loop whose rows need different numbers of iterations, on eight virtual CPU devices.
The table has the all-reduces in loops of both compiled programs, the milliseconds of a step and their ratio, the median
of turns; results have to be equal bit by bit. Programs of libraries that are not installed are left out.
"""

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=8 {os.environ.get('XLA_FLAGS', '')}"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from rich.console import Console
from rich.table import Table

import sdy

_RUNS = 3
"""The runs of each program in a turn."""

Row = Callable[[jax.Array], Any]
"""The computation of a row from one number."""


def root(a: jax.Array) -> jax.Array:
    """Newton's method."""
    return jax.lax.while_loop(lambda x: abs(x * x - a) > 1e-3 * a, lambda x: (x + a / x) / 2, 1 + a)


def minimum(a: jax.Array) -> Any:
    """BFGS of a function of three numbers."""
    optimize: Any = import_module("jax.scipy.optimize")

    def function(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.array([1.0, 10.0, 100.0]) * (x - a) ** 2) + jnp.sum(jnp.cos(x))

    found = optimize.minimize(function, jnp.zeros(3), method="BFGS")
    return found.x, found.nit


def variate(a: jax.Array) -> jax.Array:
    """A gamma variate by rejection."""
    random: Any = import_module("jax.random")
    return random.gamma(random.key(0), a)


def programs() -> Iterator[tuple[str, Row]]:
    """Yield programs with their names."""
    yield "Newton's method, by hand", root
    yield "BFGS, jax.scipy.optimize", minimum
    yield "gamma variates, jax.random", variate
    if find_spec("diffrax") is None:
        return
    diffrax: Any = import_module("diffrax")

    def derivative(t: jax.Array, y: jax.Array, a: jax.Array) -> jax.Array:
        return jnp.stack([y[1], a * (1 - y[0] ** 2) * y[1] - y[0]])

    def van_der_pol(solver: Any) -> Row:
        def row(a: jax.Array) -> Any:
            control = diffrax.PIDController(rtol=1e-3, atol=1e-4)
            term, begin = diffrax.ODETerm(derivative), jnp.array([1.0, 0.0])
            solution = diffrax.diffeqsolve(term, solver, 0.0, 5.0, 0.01, begin, a, stepsize_controller=control)
            return solution.ys, solution.stats["num_steps"]

        return row

    yield "Van der Pol's equation, diffrax with Heun", van_der_pol(diffrax.Heun())
    yield "the same with Tsit5", van_der_pol(diffrax.Tsit5())


def reductions_in_loops(compiled: Any) -> int:
    """Return the number of all-reduces outside of the entry computation."""
    computations = re.split(r"\n(?=%|ENTRY)", compiled.as_text())
    return sum(len(re.findall(r" all-reduce(?:-start)?\(", each)) for each in computations if each[:5] != "ENTRY")


def seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    for _ in range(_RUNS):
        jax.block_until_ready(run())
    return (time.perf_counter() - begin) / _RUNS


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of loops that devices end with their own rows.")
    parser.add_argument("--rows", type=int, default=64, help="the number of rows")
    parser.add_argument("--turns", type=int, default=5, help="the number of turns")
    args = parser.parse_args()
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    rows = jax.device_put(np.linspace(0.5, 5, args.rows, dtype=np.float32), sharding)
    table = Table("program", "all-reduces in loops", "jax.jit, ms", "sdy.jit, ms", "ratio")
    for name, row in programs():
        compiled = [jit(jax.vmap(row)).lower(rows).compile() for jit in (jax.jit, sdy.jit)]
        expected, results = (jax.tree.leaves(each(rows)) for each in compiled)
        assert all(map(np.array_equal, expected, results)), f"{name}: results differ"
        times = [[seconds(lambda each=each: each(rows)) for each in compiled] for _ in range(args.turns)]
        theirs, ours = (median(column) for column in zip(*times, strict=True))
        counts = ", ".join(str(reductions_in_loops(each)) for each in compiled)
        ratio = median(after / before for before, after in times)
        table.add_row(name, counts, f"{theirs * 1e3:.2f}", f"{ours * 1e3:.2f}", f"{ratio:.3f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
