"""Collectives move the narrower side of a cast, and the results are those of one device, bit for bit."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from xdsl.dialects.builtin import ModuleOp

from partitioned_programs import LINE, Argument, Program, X, assert_same_as_whole, constrain, partitioned
from samples import covering
from sdy.ir.walking import operations_of
from sdy.passes.common.properties import element_bytes
from sdy.stablehlo import AllGatherOp, AllToAllOp, CollectivePermuteOp

ROWS = (16, 13, 3)
"""Eight devices have two rows each; or the last devices have padding; or several have only padding."""

TYPES = (
    ("float32", "bfloat16"),
    ("float32", "float8_e4m3fn"),
    ("int32", "int8"),
    ("uint16", "uint8"),
    ("int32", "bfloat16"),
    ("complex64", "float32"),
    ("float32", "bool"),
)
"""Wider and narrower types."""

Movement = Callable[[jax.Array], jax.Array]


def rows(x: jax.Array) -> jax.Array:
    """Shard rows, and move their elements in a way that the planner does not repeat in another layout."""
    return constrain(x[:, ::-1], X, None)


def rolled(x: jax.Array) -> jax.Array:
    return constrain(jnp.roll(x, 1, 0), X, None)


def padded(x: jax.Array) -> jax.Array:
    return constrain(jnp.pad(x[:-1], ((1, 0), (0, 0))), X, None)


def transposed(x: jax.Array) -> jax.Array:
    return constrain(x, None, None).T


MOVEMENTS = (rolled, padded, transposed)


def narrowed_in_a_loop(x: jax.Array) -> jax.Array:
    def step(_: int, total: jax.Array) -> jax.Array:
        return total + transposed(x).astype("bfloat16")

    return lax.fori_loop(0, 3, step, jnp.zeros(x.T.shape, "bfloat16"))


def widened_in_a_loop(x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda i, x: rolled(x.astype("float32")).astype("bfloat16") + i, x.astype("bfloat16"))


def narrowed_in_branches(x: jax.Array) -> jax.Array:
    return lax.cond(x.sum() > 2, narrowed, lambda x: narrowed(x[::-1]), x)


def narrowed(x: jax.Array) -> jax.Array:
    return transposed(x).astype("bfloat16")


def bytes_moved(module: ModuleOp) -> set[int]:
    """Return the bytes of the elements that collectives move."""
    collectives = operations_of(module, AllGatherOp, AllToAllOp, CollectivePermuteOp)
    return {element_bytes(op.results[0].type) for op in collectives}


@covering
@pytest.mark.parametrize("size", ROWS)
@pytest.mark.parametrize("move", MOVEMENTS)
@pytest.mark.parametrize(("wide", "narrow"), [types for types in TYPES if types[1] not in ("bool", "float32")])
def test_a_cast_to_a_narrower_type_comes_first(wide: str, narrow: str, move: Movement, size: int) -> None:
    check(lambda x: move(rows(x)).astype(narrow), wide, size, narrow)


@covering
@pytest.mark.parametrize("size", ROWS)
@pytest.mark.parametrize("move", MOVEMENTS)
@pytest.mark.parametrize(("wide", "narrow"), TYPES)
def test_a_cast_to_a_wider_type_comes_last(wide: str, narrow: str, move: Movement, size: int) -> None:
    # The planner masks the padding of shifted rows after the cast.
    is_masked = size < 16 and move is not transposed
    check(lambda x: move(rows(x).astype(wide)), narrow, size, wide if is_masked else narrow)


@pytest.mark.parametrize("function", [narrowed_in_a_loop, widened_in_a_loop, narrowed_in_branches])
def test_loops_and_branches_have_narrow_collectives(function: Movement) -> None:
    check(lambda x: function(rows(x)), "float32", 16, "bfloat16")


def check(function: Movement, dtype: str, size: int, moved: str) -> None:
    """Check the results of a function of a matrix, and that collectives move elements of the size of `moved`."""
    original = Program(function, (Argument((size, 6), (), dtype),), LINE).module()
    local = partitioned(original)
    assert bytes_moved(local) == {np.dtype(moved).itemsize}
    assert_same_as_whole(original, local)
