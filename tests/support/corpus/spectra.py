"""Fourier transforms, and complex numbers."""

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, constrain, ints, program


def by_rows_and_columns(x: jax.Array) -> jax.Array:
    """Transform each dimension while the other one is sharded."""
    return jnp.fft.fft(constrain(jnp.fft.fft(constrain(x, X)), None, X), axis=0)


def long_convolution(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolve along time, as a product of spectra."""
    length = 2 * x.shape[-1]
    return jnp.fft.irfft(jnp.fft.rfft(x, length) * jnp.fft.rfft(kernel, length), length)[..., : x.shape[-1]]


def evolve(state: jax.Array, energies: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda _, psi: jnp.exp(-1j * energies) * (psi @ jnp.conj(psi).T @ psi), state)


def mandelbrot(places: jax.Array) -> jax.Array:
    def step(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        z, count = carry
        inside = jnp.abs(z) < 2
        return jnp.where(inside, z * z + 20 * places, z), count + inside

    return lax.fori_loop(0, 9, step, (places * 0, jnp.zeros(places.shape, "int32")))[1]


_COMPLEX = Argument((16, 32), (D, M), "complex64")

PROGRAMS: dict[str, Program] = {
    "two dimensions": program(jnp.fft.fft2, _COMPLEX),
    "rows": program(jnp.fft.fft, Argument((16, 8), (X,), "complex64"), mesh=LINE),
    "three dimensions": program(jnp.fft.fftn, Argument((4, 8, 8), (X, Y, Z), "complex64"), mesh=CUBE),
    "real": program(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2), Argument((16, 8), (D,))),
    "in batches": program(jnp.fft.ifft2, Argument((8, 8, 8), (D, M), "complex64")),
    "rows, then columns": program(by_rows_and_columns, Argument((16, 8), (), "complex64"), mesh=LINE),
    "convolution": program(long_convolution, Argument((8, 4, 8), (D, M)), Argument((4, 8), (M,))),
    "products": program(lambda x, y: x @ y.conj().T, _COMPLEX, _COMPLEX),
    "parts": program(lambda z: (z.real, jnp.abs(z), jnp.angle(z + 2), jnp.exp(1j * z)), _COMPLEX),
    "sums": program(lambda z: (z.sum(0), z.prod(1), jnp.cumsum(z, 0), z.mean()), _COMPLEX, tolerance=1e-4),
    "evolution": program(evolve, Argument((8, 8), (D, M), "complex64"), Argument((8,), (M,))),
    "gradient": program(jax.grad(lambda z: jnp.sum(jnp.abs(z @ z.T) ** 2).real), Argument((8, 8), (D, M), "complex64")),
    "set of Mandelbrot": program(mandelbrot, _COMPLEX),
    "roots of unity": program(lambda k: jnp.exp(2j * jnp.pi * k / 8).sum(0), ints((16, 32), D, M)),
}
