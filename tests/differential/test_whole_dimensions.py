"""Operations that need an unsharded dimension accept a sharded one, and receive no more bytes than with `jax.jit`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from dearer.case import Case, mesh_of
from dearer.measure import measure
from samples import covering

WHOLE = P()
ROWS, COLUMNS = P("x"), P(None, "x")


def assert_not_dearer(
    function: Callable[[jax.Array], jax.Array],
    shape: tuple[int, ...],
    split: P,
    result: P = WHOLE,
    dtype: str = "float32",
    mesh: tuple[int, ...] = (4,),
) -> None:
    devices = mesh_of(mesh)
    x = (np.arange(np.prod(shape)) * 7919 % 101 - 50).reshape(shape).astype(dtype)

    def listed(x: Any) -> list[Any]:
        return [function(x)]

    measured = measure(Case("", listed, listed, [x], [NamedSharding(devices, split)], [NamedSharding(devices, result)]))
    assert not measured.problem, measured.why


def parts(x: Any) -> Any:
    """Stack real and imaginary parts, to return them as one result."""
    return jnp.stack([x.real, x.imag])


@pytest.mark.parametrize("transform", [jnp.fft.rfft, jnp.fft.irfft], ids=["rfft", "irfft"])
@pytest.mark.parametrize(("shape", "split", "axis"), [((4, 8, 16), P("x", "y"), 1), ((4, 8, 16), P("x", None, "y"), 2)])
def test_a_transform_along_a_split_dimension(transform: Any, shape: tuple[int, ...], split: P, axis: int):
    assert_not_dearer(lambda x: parts(transform(x, axis=axis)), shape, split, mesh=(2, 4))


def test_transforms_of_uneven_parts_are_laid_out_as_xla_runs_them():
    devices = mesh_of((2, 4))
    uneven = NamedSharding(devices, P(None, ("x", "y")))

    def transforms(z: Any) -> Any:
        real = lax.with_sharding_constraint(z.real, uneven)
        spectrum = lax.with_sharding_constraint(jnp.fft.rfft(real, axis=1), uneven)
        return [parts(spectrum), jnp.fft.irfft(lax.with_sharding_constraint(z, uneven), axis=2)]

    def whole(z: Any) -> Any:
        return [parts(jnp.fft.rfft(z.real, axis=1)), jnp.fft.irfft(z, axis=2)]

    z = (np.arange(7 * 5 * 3) % 5 + 1j).reshape(7, 5, 3).astype(np.complex64)
    replicated = NamedSharding(devices, P())
    measured = measure(Case("", whole, transforms, [z], [replicated], [replicated, replicated]))
    assert not measured.problem, measured.why


@covering
@pytest.mark.parametrize("k", [4, 20, 63])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_as_many_elements_as_a_part_has(k: int, dtype: str):
    assert_not_dearer(lambda x: lax.top_k(x, k)[0], (8, 64), COLUMNS, dtype=dtype)


@covering
@pytest.mark.parametrize("k", [1, 2, 64])
@pytest.mark.parametrize("search", [lax.approx_max_k, lax.approx_min_k], ids=["max", "min"])
def test_an_approximate_search_of_each_part(search: Callable[..., Any], k: int):
    assert_not_dearer(lambda x: search(x, k)[1], (8, 64), COLUMNS)


@pytest.mark.parametrize(("shape", "split"), [((8, 256), COLUMNS), ((256,), ROWS), ((2, 4, 256), P(None, "y", "x"))])
def test_equal_elements_keep_their_order_in_a_search_of_each_part(shape: tuple[int, ...], split: P):
    mesh = (4, 2) if "y" in split else (4,)
    assert_not_dearer(lambda x: lax.top_k(x % 3, 4)[1], shape, split, mesh=mesh)


@covering
@pytest.mark.parametrize("result", [WHOLE, ROWS, COLUMNS], ids=str)
@pytest.mark.parametrize("accumulate", [lax.cummax, lax.cumprod, lax.cumlogsumexp])
def test_running_results_along_a_split_dimension(accumulate: Callable[..., Any], result: P):
    assert_not_dearer(lambda x: accumulate(x / 50, 1), (8, 64), COLUMNS, result)


def test_running_results_of_two_dimensions_that_change_places():
    assert_not_dearer(lambda x: lax.cummax(x, 1), (8, 16), P("x", "y"), P(("x", "y")), mesh=(2, 2))
