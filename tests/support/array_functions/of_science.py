"""Functions of `jax.scipy`, `jax.numpy.linalg`, `jax.numpy.fft`, `jax.random` and `jax.image`."""

# The stubs in typings/ have the functions that sdy uses, not these.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false, reportUnknownVariableType=false

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax.experimental import sparse as jsparse

from array_functions.array_function import IMAGE, MATRIX, SQUARE, VECTOR, ArrayFunction, differentiable, other

key = jax.random.key(0)


def spd(a: jax.Array) -> jax.Array:
    """Return a symmetric positive definite matrix."""
    return a @ a.T + 16 * jnp.eye(16)


FUNCTIONS: dict[str, ArrayFunction] = {
    "convolve2d": differentiable(lambda x, y: jsp.signal.convolve2d(x, y[:3, :3], mode="same"), MATRIX, MATRIX),
    "fftconvolve": differentiable(lambda x, y: jsp.signal.fftconvolve(x, y[:5], mode="same"), VECTOR, VECTOR),
    "map_coordinates": differentiable(
        lambda x, y: jsp.ndimage.map_coordinates(x, [jnp.abs(y) * 4, jnp.abs(y) * 3], order=1), MATRIX, MATRIX
    ),
    "resize up": differentiable(lambda x: jax.image.resize(x, (2, 32, 32, 3), "bilinear"), IMAGE),
    "resize down": differentiable(lambda x: jax.image.resize(x, (2, 8, 8, 3), "cubic"), IMAGE),
    "resize nearest": differentiable(lambda x: jax.image.resize(x, (2, 24, 24, 3), "nearest"), IMAGE),
    "scale_and_translate": differentiable(
        lambda x: jax.image.scale_and_translate(
            x, (2, 16, 16, 3), (1, 2), jnp.ones(2), jnp.array([0.5, 0.25]), "linear"
        ),
        IMAGE,
    ),
    "gammainc": other(lambda x: jsp.special.gammainc(jnp.abs(x) + 0.5, jnp.abs(x) + 1), MATRIX),
    "betainc": other(lambda x: jsp.special.betainc(jnp.abs(x) + 0.5, jnp.abs(x) + 1, 0.3), MATRIX),
    "logsumexp": differentiable(lambda x: jsp.special.logsumexp(x, axis=0, b=2.0), MATRIX),
    "random.gamma": other(lambda x: jax.random.gamma(key, jnp.abs(x) + 0.5), MATRIX),
    "random.mvn": differentiable(lambda x: jax.random.multivariate_normal(key, x[0], jnp.eye(16), (8,)), MATRIX),
    "random.categorical": other(lambda x: jax.random.categorical(key, x), MATRIX),
    "random.choice replace=False": other(lambda x: jax.random.choice(key, x, (8,), replace=False), VECTOR),
    "random.choice p": other(lambda x: jax.random.choice(key, 64, (8,), p=jax.nn.softmax(x)), VECTOR),
    "random.truncated": differentiable(lambda x: jax.random.truncated_normal(key, -1, 1, x.shape) + x, MATRIX),
    "random.poisson": other(
        lambda x: jax.random.poisson(jax.random.key(0, impl="threefry2x32"), jnp.abs(x) * 3), MATRIX
    ),
    "random.dirichlet": other(lambda x: jax.random.dirichlet(key, jnp.abs(x) + 0.5), MATRIX),
    "random.orthogonal": differentiable(lambda x: jax.random.orthogonal(key, 16) @ x, SQUARE),
    "random.permutation axis1": differentiable(lambda x: jax.random.permutation(key, x, axis=1), MATRIX),
    "random.shuffle independent": other(lambda x: jax.random.permutation(key, x, axis=1, independent=True), MATRIX),
    "fftshift": differentiable(lambda x: jnp.fft.fftshift(x), MATRIX),
    "fft2": differentiable(lambda x: jnp.abs(jnp.fft.fft2(x)), MATRIX),
    "rfftn": differentiable(lambda x: jnp.abs(jnp.fft.rfftn(x, axes=(1, 2))), IMAGE),
    "irfft": differentiable(lambda x: jnp.fft.irfft(x.astype(jnp.complex64), axis=0), MATRIX),
    "dct": differentiable(lambda x: jsp.fft.dct(x, axis=0), MATRIX),
    "stft": other(lambda x: jnp.abs(jsp.signal.stft(x, nperseg=16)[2]), VECTOR),
    "welch": differentiable(lambda x: jsp.signal.welch(x, nperseg=16)[1], VECTOR),
    "detrend": differentiable(lambda x: jsp.signal.detrend(x, axis=0), MATRIX),
    "block_diag": differentiable(lambda x, y: jsp.linalg.block_diag(x, y), MATRIX, MATRIX),
    "toeplitz": differentiable(lambda x: jsp.linalg.toeplitz(x), (16,)),
    "expm": differentiable(lambda x: jsp.linalg.expm(x / 8), SQUARE),
    "solve": differentiable(lambda x, y: jnp.linalg.solve(spd(x), y), SQUARE, SQUARE),
    "lstsq": other(lambda x, y: jnp.linalg.lstsq(x, y[:, :2])[0], MATRIX, MATRIX),
    "inv": differentiable(lambda x: jnp.linalg.inv(spd(x)), SQUARE),
    "pinv": other(lambda x: jnp.linalg.pinv(x), MATRIX),
    "slogdet": differentiable(lambda x: jnp.linalg.slogdet(spd(x))[1], SQUARE),
    "svd values": differentiable(lambda x: jnp.linalg.svd(x, compute_uv=False), MATRIX),
    "eigvalsh": differentiable(lambda x: jnp.linalg.eigvalsh(spd(x)), SQUARE),
    "eigh batched": differentiable(lambda x: jnp.linalg.eigvalsh(jnp.einsum("bij,bkj->bik", x, x)), (8, 4, 4)),
    "matrix_rank": other(lambda x: jnp.linalg.matrix_rank(x), MATRIX),
    "norm nuc": differentiable(lambda x: jnp.linalg.norm(x, "nuc"), MATRIX),
    "cond": other(lambda x: jnp.linalg.cond(spd(x)), SQUARE),
    "cho_solve": differentiable(lambda x, y: jsp.linalg.cho_solve(jsp.linalg.cho_factor(spd(x)), y), SQUARE, SQUARE),
    "lu": other(lambda x: jsp.linalg.lu(spd(x)), SQUARE),
    "sqrtm": other(lambda x: jsp.linalg.sqrtm(spd(x)), SQUARE),
    "polar": other(lambda x: jsp.linalg.polar(x, method="qdwh"), SQUARE),
    "cg": other(lambda x, y: jsp.sparse.linalg.cg(lambda v: spd(x) @ v, y)[0], SQUARE, SQUARE),
    "gmres": other(lambda x, y: jsp.sparse.linalg.gmres(lambda v: spd(x) @ v, y[0])[0], SQUARE, SQUARE),
    "bicgstab": other(lambda x, y: jsp.sparse.linalg.bicgstab(lambda v: spd(x) @ v, y[0])[0], SQUARE, SQUARE),
    "logsigmoid sparsemax": differentiable(lambda x: jax.nn.sparse_plus(x) + jax.nn.squareplus(x), MATRIX),
    "spectral bessel": differentiable(
        lambda x: jsp.special.i0e(x) + jsp.special.ndtr(x) + jsp.special.erfinv(jnp.tanh(x)), MATRIX
    ),
    "zeta polygamma": other(
        lambda x: jsp.special.digamma(jnp.abs(x) + 1) + jsp.special.polygamma(1, jnp.abs(x) + 1), MATRIX
    ),
    "stats kde": differentiable(lambda x, y: jsp.stats.gaussian_kde(x)(y), VECTOR, VECTOR),
    "stats rank": other(lambda x: jsp.stats.rankdata(x), VECTOR),
    "stats mode": other(lambda x: jsp.stats.mode(jnp.round(x), axis=0)[0], MATRIX),
    "vq": other(lambda x, y: jsp.cluster.vq.vq(x, y[:4])[0], MATRIX, MATRIX),
    "delaunay-like grid interp": differentiable(
        lambda x, y: jsp.interpolate.RegularGridInterpolator((jnp.arange(32.0), jnp.arange(16.0)), x)(
            jnp.stack([jnp.abs(y[:, 0]) * 4, jnp.abs(y[:, 1]) * 3], -1)
        ),
        MATRIX,
        MATRIX,
    ),
    "bcoo matmul": other(lambda x, y: jsparse.BCOO.fromdense(jnp.where(x > 1, x, 0), nse=64) @ y.T, MATRIX, MATRIX),
    "bcoo given": differentiable(
        lambda x, y: (
            jsparse.BCOO((x, jnp.stack([jnp.arange(64) % 32, jnp.arange(64) % 16], -1)), shape=(32, 16)) @ y[:16]
        ),
        VECTOR,
        VECTOR,
    ),
}
