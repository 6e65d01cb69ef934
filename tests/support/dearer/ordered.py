"""Operations that need an unsharded dimension: sorts, top-k, argmax, prefix sums, Fourier transforms."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from dearer.case import Case, Draft

_DTYPES = ("float32", "int8", "float16", "bfloat16", "int32")


def top_k(draft: Draft) -> Case:
    """Return the k largest elements of the last dimension, their indices, or both."""
    shape = draft.shape(1, 3)
    x = draft.operand(shape, draft.choices.of(_DTYPES))
    k = draft.choices.of(range(1, x.shape[-1] + 1))
    what = draft.choices.of(("both", "values", "indices"))
    chosen = {"both": slice(None), "values": slice(1), "indices": slice(1, 2)}[what]
    return draft.case(f"{what} of top_k {k} of {x.dtype}", lambda x: lax.top_k(x, k)[chosen])


def approx_top_k(draft: Draft) -> Case:
    """Return the k approximately largest or smallest elements along a dimension."""
    x = draft.operand(draft.shape(1, 3), draft.choices.of(("float32", "bfloat16")))
    dim = draft.choices.below(x.ndim)
    k = draft.choices.of(range(1, x.shape[dim] + 1))
    function = draft.choices.of((lax.approx_max_k, lax.approx_min_k))
    return draft.case(
        f"{function.__name__} {k} along {dim} of {x.dtype}", lambda x: function(x, k, reduction_dimension=dim)
    )


def place_of_extreme(draft: Draft) -> Case:
    """Return the index of the largest or smallest element, along a dimension or of all elements."""
    x = draft.operand(draft.shape(1, 3), draft.choices.of(_DTYPES))
    dim = draft.choices.of((None, *range(x.ndim)))
    function = draft.choices.of((jnp.argmax, jnp.argmin))
    return draft.case(f"{function.__name__} along {dim} of {x.dtype}", lambda x: function(x, axis=dim))


def sort(draft: Draft) -> Case:
    """Sort or argsort along a dimension."""
    x = draft.operand(draft.shape(1, 3), draft.choices.of(_DTYPES))
    dim = draft.choices.below(x.ndim)
    function = draft.choices.of((jnp.sort, jnp.argsort))
    return draft.case(f"{function.__name__} along {dim} of {x.dtype}", lambda x: function(x, axis=dim))


def running(draft: Draft) -> Case:
    """Compute a cumulative sum, product, maximum, minimum or log-sum-exp along a dimension, or differentiate that."""
    x = draft.operand(_shape(draft), draft.choices.of(("float32", "int32")))
    dim, reverse = draft.choices.below(x.ndim), draft.choices.of((False, True))
    functions = (lax.cumsum, lax.cummax, lax.cummin, lax.cumprod, *[lax.cumlogsumexp] * (x.dtype == "float32"))
    function = draft.choices.of(functions)
    name = f"{function.__name__} along {dim}, {reverse=}"

    def accumulate(x: jax.Array) -> jax.Array:
        return function(x % 3, dim, reverse)

    if x.dtype == "float32" and draft.choices.of((False, True)):
        return draft.case(f"gradient of {name}", jax.grad(lambda x: (accumulate(x) ** 2).sum()))
    return draft.case(name, accumulate)


def fourier_transform(draft: Draft) -> Case:
    """Transform real or complex numbers along a dimension, or differentiate that."""
    x = draft.operand(_shape(draft), "float32")
    dim = draft.choices.below(x.ndim)
    kinds = ("rfft", "fft", "ifft") if x.shape[dim] == 1 else ("rfft", "fft", "ifft", "irfft")
    kind = draft.choices.of(kinds)
    name = f"{kind} along {dim}"

    def transform(x: jax.Array) -> list[jax.Array]:
        return _TRANSFORMS[kind](x, dim)

    if draft.choices.of((False, True)):
        return draft.case(f"gradient of {name}", jax.grad(lambda x: sum((part**2).sum() for part in transform(x))))
    return draft.case(name, transform)


def _shape(draft: Draft) -> tuple[int, ...]:
    """Choose a shape of small, also uneven, dimensions, or of dimensions that every mesh divides."""
    return draft.choices.of((draft.shape(1, 3), (16, 8), (8, 16), (8, 8, 8)))


_TRANSFORMS: dict[str, Callable[[jax.Array, int], list[jax.Array]]] = {
    "rfft": lambda x, dim: _parts(jnp.fft.rfft(x, axis=dim)),
    "fft": lambda x, dim: _parts(jnp.fft.fft(x + 1j * x, axis=dim)),
    "ifft": lambda x, dim: _parts(jnp.fft.ifft(x - 2j * x, axis=dim)),
    "irfft": lambda x, dim: [jnp.fft.irfft(x + 1j * x, axis=dim)],
}


def _parts(x: jax.Array) -> list[jax.Array]:
    return [x.real, x.imag]


def reduction(draft: Draft) -> Case:
    """Reduce along some dimensions by a sum, maximum, product or any."""
    x = draft.operand(draft.shape(1, 3), "int32")
    dims = draft.choices.of(((0,), (x.ndim - 1,), tuple(range(x.ndim))))
    name, function = draft.choices.of((("sum", jnp.sum), ("max", jnp.max), ("prod", jnp.prod), ("any", jnp.any)))
    return draft.case(f"{name} along {dims}", lambda x: function(x % 3, axis=dims))


ORDERED = [top_k, approx_top_k, place_of_extreme, sort, running, fourier_transform, reduction]
