"""Collectives move the elements that are used, and the results are those of one device, bit for bit."""

from collections.abc import Callable

import jax
import pytest

from partitioned_programs import LINE, Argument, Program, X, assert_same_as_whole, constrain, partitioned
from sdy.passes.spmd.costs.communication import bytes_received

COLUMNS = 6

Part = Callable[[jax.Array], jax.Array]


def rows(x: jax.Array) -> jax.Array:
    """Shard rows, and move their elements in a way that the planner does not repeat in another layout."""
    return constrain(x[:, ::-1], X)


def gathered(x: jax.Array) -> jax.Array:
    return constrain(x)


def resharded(x: jax.Array) -> jax.Array:
    return constrain(x, None, X)


def columns(x: jax.Array) -> jax.Array:
    return x[..., :2]


def every_other_column(x: jax.Array) -> jax.Array:
    return x[..., 1::2]


def column_of_some_rows(x: jax.Array) -> jax.Array:
    return x[1:, :, 1]


MOVES = [(gathered, 16), (gathered, 13), (gathered, 3), (resharded, 16), (resharded, 13)]
"""Eight devices have two rows each; or the last devices have padding; or several have only padding."""


@pytest.mark.parametrize(("part", "used"), [(columns, 2), (every_other_column, 3), (column_of_some_rows, 1)])
@pytest.mark.parametrize(("move", "size"), MOVES)
def test_devices_receive_the_elements_that_are_used(move: Part, size: int, part: Part, used: int) -> None:
    argument = Argument((size, 8, COLUMNS))
    original = Program(lambda x: part(move(rows(x))), (argument,), LINE).module()
    whole = partitioned(Program(lambda x: move(rows(x)), (argument,), LINE).module())
    local = partitioned(original)
    assert bytes_received(local) <= bytes_received(whole) * used / COLUMNS
    assert_same_as_whole(original, local)
