"""Convolutions, pools, their gradients, and other stencils."""

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, program


def convolve(images: jax.Array, kernel: jax.Array, groups: int = 1) -> jax.Array:
    return lax.conv_general_dilated(images, kernel, (1, 1), "SAME", feature_group_count=groups)


def max_pool(images: jax.Array) -> jax.Array:
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def mean_pool(images: jax.Array) -> jax.Array:
    """Average overlapping windows that extend over the border."""
    sums, ones = (
        lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME") for x in (images, images * 0 + 1)
    )
    return sums / ones


def causal(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Causal convolution along one dimension, with a dilated kernel."""
    return lax.conv_general_dilated(x, kernel, (1,), [(4, 0)], rhs_dilation=(2,))


def strided(images: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(images, kernel, (2, 2), "SAME")


def upsample(images: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_transpose(images, kernel, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))


def gradients(images: jax.Array, kernel: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.grad(lambda x, k: jnp.sum(jnp.sin(convolve(x, k))), (0, 1))(images, kernel)


def in_space(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, kernel, (1, 1, 1), "SAME")


def patches(images: jax.Array, kernel: jax.Array) -> jax.Array:
    """Embed images as patches of 4 by 4 pixels, each projected to a vector."""
    return lax.conv_general_dilated(images, kernel, (4, 4), "VALID").reshape(images.shape[0], kernel.shape[0], -1)


def laplacian(x: jax.Array) -> jax.Array:
    """Take a step of the heat equation on a torus."""
    return x + 0.1 * (sum(jnp.roll(x, by, dim) for by in (1, -1) for dim in (0, 1)) - 4 * x)


def blurred(x: jax.Array) -> jax.Array:
    """Average three neighbours, by slices of the padded tensor."""
    padded = jnp.pad(x, ((1, 1), (0, 0)), "edge")
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3


_IMAGES, _KERNEL = Argument((8, 16, 8, 8), (D, M)), Argument((32, 16, 3, 3), (None, M))
_SMALL = Argument((4, 4, 8, 8), (None, None, D, M))

PROGRAMS: dict[str, Program] = {
    "features contracted": program(convolve, _IMAGES, _KERNEL),
    "in groups": program(lambda x, k: convolve(x, k, 8), _IMAGES, Argument((32, 2, 3, 3), (M,))),
    "each feature alone": program(
        lambda x, k: convolve(x, k, 8), Argument((4, 8, 8, 8), (D, M)), Argument((8, 1, 3, 3), (M,))
    ),
    "space split": program(convolve, Argument((8, 16, 8, 8), (None, None, D, M)), _KERNEL),
    "one dimension, causal": program(causal, Argument((4, 4, 32), (None, None, X)), Argument((6, 4, 3)), mesh=LINE),
    "strided, space split": program(strided, _SMALL, Argument((6, 4, 3, 3))),
    "upsampled": program(upsample, Argument((4, 4, 8, 8), (D, None, M)), Argument((4, 4, 3, 3))),
    "gradients": program(gradients, Argument((8, 4, 8, 8), (D, M)), Argument((6, 4, 3, 3), (None, M))),
    "gradients, space split": program(gradients, Argument((4, 4, 8, 8), (D, None, M)), Argument((6, 4, 3, 3))),
    "three dimensions": program(
        in_space, Argument((2, 2, 8, 8, 8), (None, None, X, Y, Z)), Argument((3, 2, 3, 3, 3)), mesh=CUBE
    ),
    "patches": program(patches, Argument((8, 3, 16, 8), (D, None, M)), Argument((8, 3, 4, 4))),
    "largest": program(max_pool, _IMAGES),
    "largest, space split": program(max_pool, Argument((8, 16, 8, 8), (None, None, D, M))),
    "largest, gradient": program(jax.grad(lambda x: jnp.sum(jnp.sin(max_pool(x)))), Argument((8, 4, 8, 8), (D, M))),
    "mean, space split": program(mean_pool, _SMALL),
    "heat on a torus": program(laplacian, Argument((16, 16), (D, M))),
    "blur by slices": program(blurred, Argument((32, 8), (X,)), mesh=LINE),
}
