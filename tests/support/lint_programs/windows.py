"""Windows over a sequence that is sharded."""

import jax
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor

STEPS, WINDOW = 2**22, 2**10


def sum_of_windows(x: jax.Array, size: int) -> jax.Array:
    return lax.reduce_window(x, 0.0, lax.add, (size,), (1,), "SAME")  # mistake


def long_windows(x: jax.Array) -> jax.Array:
    return sum_of_windows(x, 2 * STEPS - 1)


def short_windows(x: jax.Array) -> jax.Array:
    return sum_of_windows(x, WINDOW)


ARGUMENTS = (tensor(STEPS, split=P("data")),)

PROGRAMS = {
    "windows over all of the sequence": Planted(
        "reshard-through-replication",
        "",
        Written(long_windows, ARGUMENTS, results=P("data"), mesh={"data": 8}),
        Written(short_windows, ARGUMENTS, results=P("data"), mesh={"data": 8}),
        sum_of_windows,
    ),
}
