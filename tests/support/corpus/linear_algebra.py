"""Factorizations, solvers, and products of more than two tensors."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, ints, program


def positive(x: jax.Array) -> jax.Array:
    return x @ x.mT + jnp.eye(x.shape[-2])


def regression(x: jax.Array, y: jax.Array) -> jax.Array:
    factor = jnp.linalg.cholesky(positive(x.T))
    return solve_triangular(factor, solve_triangular(factor, x.T @ y, lower=True), trans=1, lower=True)


def newton(x: jax.Array, labels: jax.Array) -> jax.Array:
    """Take two steps of logistic regression by Newton's method."""
    w = jnp.zeros(x.shape[1])
    for _ in range(2):
        p = jax.nn.sigmoid(x @ w)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 0.1 * jnp.eye(len(w))
        w = w - jnp.linalg.solve(curvature, x.T @ (p - labels))
    return w


def orthogonalize(x: jax.Array) -> jax.Array:
    """Orthogonalize a matrix by Newton-Schulz iteration, as the Muon optimizer does."""
    x = x / jnp.sqrt(jnp.sum(x * x))
    for _ in range(3):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x


def summa(x: jax.Array, y: jax.Array) -> jax.Array:
    return x @ y


_BATCH = Argument((16, 8, 8), (D, M))

PROGRAMS: dict[str, Program] = {
    "cholesky": program(lambda x: jnp.linalg.cholesky(positive(x)), _BATCH),
    "cholesky of what is split": program(lambda x: jnp.linalg.cholesky(positive(x)), Argument((8, 8), (D, M))),
    "cholesky, gradient": program(
        jax.grad(lambda x: jnp.linalg.cholesky(positive(x)).sum()), Argument((8, 4, 4), (D, M))
    ),
    "triangular solve": program(
        lambda a, b: solve_triangular(a + 9 * jnp.eye(8), b), Argument((8, 8)), Argument((8, 16), (None, D))
    ),
    "triangular solve in batches": program(
        lambda a, b: solve_triangular(a + 9 * jnp.eye(8), b), _BATCH, Argument((16, 8, 4), (D, None, M))
    ),
    "triangular solve on the right": program(
        lambda a, b: lax.linalg.triangular_solve(a + 9 * jnp.eye(8), b, lower=True),
        _BATCH,
        Argument((16, 4, 8), (D, M)),
    ),
    "regression": program(regression, Argument((32, 8), (D, M)), Argument((32, 2), (D,))),
    "newton": program(newton, Argument((32, 4), (D,)), Argument((32,), (D,)), tolerance=1e-4),
    "orthogonal": program(orthogonalize, Argument((8, 16), (X, (Y, Z))), mesh=CUBE, tolerance=1e-4),
    "qr": program(lambda x: jnp.abs(jnp.linalg.qr(x)[1]), Argument((8, 6, 4), (D,)), tolerance=1e-4),
    "eigenvalues": program(lambda x: jnp.linalg.eigvalsh(positive(x)), Argument((8, 4, 4), (D,))),
    "inverse": program(lambda x: jnp.linalg.inv(positive(x)), _BATCH, tolerance=1e-4),
    "determinant": program(lambda x: jnp.linalg.slogdet(positive(x))[1], _BATCH, tolerance=1e-4),
    "matrix power": program(lambda x: jnp.linalg.matrix_power(x, 5), Argument((8, 8), (D, M))),
    "outer products": program(jnp.kron, Argument((4, 4), (D,)), Argument((4, 2), (None, M))),
    "product over a grid": program(summa, Argument((16, 16), (D, M)), Argument((16, 16), (D, M))),
    "product over three axes": program(summa, Argument((8, 16), (X, Y)), Argument((16, 8), (Y, Z)), mesh=CUBE),
    "product, inner dimension split": program(summa, Argument((8, 16), (None, X)), Argument((16, 8), (X,)), mesh=LINE),
    "several tensors": program(
        lambda a, b, c: jnp.einsum("ijk,jl,klm->im", a, b, c),
        Argument((8, 4, 4), (D,)),
        Argument((4, 8), (M,)),
        Argument((4, 8, 6), (None, M)),
    ),
    "attention": program(
        lambda q, k, v: jax.nn.softmax(jnp.einsum("btd,bsd->bts", q, k)) @ v,
        *(Argument((4, 8, 4), (M, D)) for _ in range(3)),
    ),
    "products of integers": program(jnp.matmul, ints((16, 8), D, M), ints((8, 12), M)),
    "products of bfloat16": program(
        jnp.matmul, Argument((16, 32), (D, M), "bfloat16"), Argument((32, 8), (M,), "bfloat16"), tolerance=1e-2
    ),
    "distances": program(
        lambda x, y: jnp.sqrt(jnp.sum((x[:, None] - y) ** 2, -1)), Argument((16, 4), (D,)), Argument((8, 4), (M,))
    ),
    "covariance": program(jnp.cov, Argument((8, 32), (M, D))),
}
