"""Differential equations by diffrax, linear systems by lineax, and roots and minima by optimistix and jaxopt."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jaxopt
import lineax
import numpy as np
import optax
import optimistix
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import train_step
from placed import GRID, Build, Placed, by_name, fully_sharded, normal, placed

_KEY = jax.random.key(0)
_BATCH, _WIDTH = 64, 64


def _neural(adaptive: bool, mapped: bool, rule: Any, mesh: Any, batch: P) -> Build:
    """A neural differential equation, solved per example under vmap or for the batch as one system."""

    def build() -> Placed:
        field = eqx.nn.MLP(_WIDTH, _WIDTH, 128, 1, activation=jnp.tanh, key=_KEY)
        params, static = eqx.partition(field, eqx.is_inexact_array)
        control = diffrax.PIDController(1e-2, 1e-2) if adaptive else diffrax.ConstantStepSize()

        def solve(params: Any, start: jax.Array) -> jax.Array:
            network = eqx.combine(params, static)
            field = network if start.ndim == 1 else jax.vmap(network)
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, args: field(y)),
                diffrax.Tsit5(),
                0.0,
                1.0,
                0.1,
                start,
                stepsize_controller=control,
                max_steps=16,
            )
            return solution.ys[-1]

        def loss(params: Any, start: jax.Array, end: jax.Array) -> jax.Array:
            ends = jax.vmap(lambda y: solve(params, y))(start) if mapped else solve(params, start)
            return jnp.mean(jnp.square(ends - end))

        optimizer = optax.adam(1e-3)
        kept = ((params, rule), (optimizer.init(params), rule))
        ends = ((normal(_BATCH, _WIDTH), batch), (normal(_BATCH, _WIDTH, seed=1), batch))
        return placed(train_step(optimizer, loss), *kept, *ends, mesh=mesh)

    return build


def stochastic() -> Placed:
    """Stochastic differential equations, each with its own Brownian tree."""

    def path(key: jax.Array, start: jax.Array) -> jax.Array:
        brownian = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-1, start.shape, key)
        noise = diffrax.ControlTerm(lambda t, y, args: lineax.DiagonalLinearOperator(0.1 * y), brownian)
        terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y), noise)
        return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.1, start, max_steps=16).ys[-1]

    return placed(jax.vmap(path), (jax.random.split(_KEY, _BATCH), P("x")), (normal(_BATCH, _WIDTH), P("x")))


def heat() -> Placed:
    """The heat equation on a grid sharded along both dimensions, with an explicit adaptive solver."""

    def step(grid: jax.Array) -> jax.Array:
        def field(t: Any, y: jax.Array, args: Any) -> jax.Array:
            return 0.1 * sum(jnp.roll(y, shift, axis) - y for shift in (1, -1) for axis in (0, 1))

        return diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Heun(),
            0.0,
            1.0,
            0.1,
            grid,
            stepsize_controller=diffrax.PIDController(1e-3, 1e-3),
            max_steps=32,
        ).ys[-1]

    return placed(step, (normal(128, 64), P("data", "model")), mesh=GRID)


def _definite(size: int = _WIDTH, *batch: int) -> Any:
    a = normal(*batch, size, size, scale=0.1)
    return a @ a.swapaxes(-1, -2) + np.eye(size, dtype=np.float32)


def conjugate_gradients() -> Placed:
    """Conjugate gradients with a matrix sharded along rows."""

    def solve(matrix: jax.Array, vector: jax.Array) -> jax.Array:
        operator = lineax.MatrixLinearOperator(matrix, lineax.positive_semidefinite_tag)
        return lineax.linear_solve(operator, vector, lineax.CG(1e-4, 1e-4)).value

    return placed(solve, (_definite(128), P("x")), (normal(128), P()))


def factored() -> Placed:
    """Batched least squares by QR."""

    def solve(matrix: jax.Array, vector: jax.Array) -> jax.Array:
        return lineax.linear_solve(lineax.MatrixLinearOperator(matrix), vector, lineax.QR()).value

    return placed(jax.vmap(solve), (normal(16, 32, 8), P("x")), (normal(16, 32, seed=1), P("x")))


def solved_gradient() -> Placed:
    """The gradient of batched Cholesky solves."""

    def loss(matrix: jax.Array, vector: jax.Array) -> jax.Array:
        operator = lineax.MatrixLinearOperator(matrix, lineax.positive_semidefinite_tag)
        return jnp.sum(lineax.linear_solve(operator, vector, lineax.Cholesky()).value ** 2)

    gradient = jax.grad(lambda a, b: jax.vmap(loss)(a, b).sum(), (0, 1))
    return placed(gradient, (_definite(16, 32), P("x")), (normal(32, 16), P("x")))


def least_squares() -> Placed:
    """A curve fit to sharded points by Levenberg-Marquardt."""

    def fit(start: Any, x: jax.Array, y: jax.Array) -> Any:
        def residuals(p: Any, args: Any) -> jax.Array:
            return p["a"] * jnp.exp(-p["b"] * args[0]) + p["c"] - args[1]

        solver = optimistix.LevenbergMarquardt(1e-4, 1e-4)
        return optimistix.least_squares(residuals, solver, start, (x, y), max_steps=16, throw=False).value

    x = np.linspace(0, 4, 512, dtype=np.float32)
    y = (2.5 * np.exp(-1.3 * x) + 0.5 + 0.01 * normal(512)).astype(np.float32)
    start = {"a": jnp.float32(1), "b": jnp.float32(1), "c": jnp.float32(0)}
    return placed(fit, (start, P()), (x, P("x")), (y, P("x")))


def fixed_points() -> Placed:
    """A deep equilibrium layer and its implicit gradient."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        def layer(z: jax.Array, args: Any) -> jax.Array:
            return jnp.tanh(z @ args[0] + args[1])

        solver = optimistix.FixedPointIteration(1e-3, 1e-3)
        found = optimistix.fixed_point(layer, solver, jnp.zeros_like(x), (w, x), max_steps=32, throw=False)
        return jnp.mean(found.value**2)

    w = (_WIDTH, _WIDTH)
    return placed(
        jax.value_and_grad(loss), (normal(*w, scale=0.05), P(None, "model")), (normal(*w), P("data")), mesh=GRID
    )


def logistic_regression() -> Placed:
    """jaxopt's L-BFGS on data sharded along examples and features."""

    def fit(w: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        def loss(w: jax.Array) -> jax.Array:
            return jnp.mean(optax.sigmoid_binary_cross_entropy(x @ w, y)) + 1e-2 * jnp.sum(w * w)

        return jaxopt.LBFGS(loss, maxiter=5, history_size=4).run(w).params

    x = normal(256, 128)
    y = (x[:, 0] > 0).astype(np.float32)
    return placed(fit, (jnp.zeros(128), P("model")), (x, P("data", "model")), (y, P("data")), mesh=GRID)


_MEGATRON = by_name({r"layers/0/(weight|bias)": P("model"), "layers/1/weight": P(None, "model")})
_LINE = {"x": 8}

PROGRAMS: dict[str, Build] = {
    "neural equation, fixed steps, fully sharded": _neural(False, False, fully_sharded(), _LINE, P("x")),
    "neural equation, fixed steps, tensor parallel": _neural(False, False, _MEGATRON, GRID, P("data")),
    "neural equation, adaptive steps for each, data parallel": _neural(True, True, P(), _LINE, P("x")),
    "stochastic equations, paths split": stochastic,
    "heat equation on a grid": heat,
    "conjugate gradients, rows split": conjugate_gradients,
    "least squares by QR, batch split": factored,
    "gradient of Cholesky solves, batch split": solved_gradient,
    "curve by Levenberg-Marquardt, points split": least_squares,
    "equilibrium layer, tensor parallel": fixed_points,
    "logistic regression by L-BFGS, examples and features split": logistic_regression,
}
