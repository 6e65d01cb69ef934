"""Sampling and variational inference by numpyro and blackjax, and flows by distrax."""

from typing import Any

import blackjax
import distrax
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from jax.sharding import PartitionSpec as P
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density

from drop_in_programs.steps import train_step
from placed import GRID, Build, Placed, filled, fully_sharded, normal, placed

_KEY = jax.random.key(0)
_EXAMPLES, _FEATURES, _GROUPS = 256, 64, 16


def _data() -> tuple[Any, Any, Any]:
    x = normal(_EXAMPLES, _FEATURES)
    return x, (x[:, 0] > 0).astype(np.float32), np.arange(_EXAMPLES, dtype=np.int32) % _GROUPS


def regression(x: jax.Array, y: jax.Array, group: jax.Array) -> None:
    """Hierarchical logistic regression with an offset per group."""
    w = numpyro.sample("w", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    offsets = numpyro.sample("offsets", dist.Normal(jnp.zeros(_GROUPS), 1.0).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ w + spread * offsets[group]).to_event(1), obs=y)


def log_joint(values: dict[str, jax.Array], *data: jax.Array) -> jax.Array:
    numbers = {**values, "spread": jnp.exp(values["spread"])}
    return log_density(regression, data, {}, numbers)[0] + values["spread"]


def _start(*chains: int) -> dict[str, Any]:
    return {
        "w": normal(*chains, _FEATURES, scale=0.1),
        "spread": normal(*chains, seed=1, scale=0.1),
        "offsets": normal(*chains, _GROUPS, seed=2, scale=0.1),
    }


def _sampled(move: Any, chains: P, data: P, count: int = 8) -> Build:
    """A step of several Markov chains on the same data."""

    def build() -> Placed:
        def step(keys: jax.Array, start: Any, *data: jax.Array) -> Any:
            def one(key: jax.Array, start: Any) -> Any:
                return move(key, start, lambda values: log_joint(values, *data))

            return jax.vmap(one)(keys, start)

        arrays = [(array, data) for array in _data()]
        return placed(step, (jax.random.split(_KEY, count), chains), (_start(count), chains), *arrays, mesh=GRID)

    return build


def hamiltonian(key: jax.Array, start: Any, density: Any) -> Any:
    kernel = blackjax.hmc(density, 1e-2, jnp.ones(_FEATURES + _GROUPS + 1), 4)
    state, information = kernel.step(key, kernel.init(start))
    return state.position, information.acceptance_rate


def no_u_turn(key: jax.Array, start: Any, density: Any) -> Any:
    kernel = blackjax.nuts(density, 1e-2, jnp.ones(_FEATURES + _GROUPS + 1), max_num_doublings=3)
    state, _ = kernel.step(key, kernel.init(start))
    return state.position


def langevin(key: jax.Array, start: Any, density: Any) -> Any:
    kernel = blackjax.mala(density, 1e-3)
    state, _ = kernel.step(key, kernel.init(start))
    return state.position


def leapfrog() -> Placed:
    """Handwritten Hamiltonian Monte Carlo on the density of numpyro's model, with sharded examples."""

    def step(position: Any, momentum: Any, *data: jax.Array) -> Any:
        def kick(position: Any, momentum: Any) -> Any:
            gradient = jax.grad(log_joint)(position, *data)
            return jax.tree.map(lambda m, g: m + 5e-3 * g, momentum, gradient)

        def turn(_: int, state: Any) -> Any:
            position, momentum = state
            momentum = kick(position, momentum)
            position = jax.tree.map(lambda p, m: p + 1e-2 * m, position, momentum)
            return position, kick(position, momentum)

        return jax.lax.fori_loop(0, 8, turn, (position, momentum))

    arrays = [(array, P(("data", "model"))) for array in _data()]
    return placed(step, (_start(), P()), (_start(), P()), *arrays, mesh=GRID)


def variational() -> Placed:
    """numpyro's SVI with a normal guide for each parameter."""
    data = _data()
    inference = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(1e-2), Trace_ELBO(4))
    state = inference.init(_KEY, *data)
    arrays = [(array, P("x")) for array in data]
    return placed(lambda state, *data: inference.update(state, *data), (state, P()), *arrays)


def flow() -> Placed:
    """A normalizing flow of coupling layers with fully sharded networks."""
    width = 64

    def likelihood(x: jax.Array) -> jax.Array:
        def couple(index: int) -> Any:
            network = hk.Sequential(
                [hk.Linear(256), jax.nn.relu, hk.Linear(2 * width, w_init=hk.initializers.RandomNormal(1e-2))]
            )

            def bijector(params: jax.Array) -> distrax.Bijector:
                shift, log_scale = jnp.split(params, 2, -1)
                return distrax.ScalarAffine(shift, log_scale=jnp.tanh(log_scale))

            return distrax.MaskedCoupling(jnp.arange(width) % 2 == index % 2, network, bijector)

        chain = distrax.Inverse(distrax.Chain([couple(index) for index in range(4)]))
        base = distrax.MultivariateNormalDiag(jnp.zeros(width), jnp.ones(width))
        return distrax.Transformed(base, chain).log_prob(x)

    made = hk.without_apply_rng(hk.transform(likelihood))
    x, optimizer = normal(128, width), optax.adam(1e-3)
    params = filled(jax.eval_shape(made.init, _KEY, x))
    step = train_step(optimizer, lambda params, x: -made.apply(params, x).mean())
    return placed(step, (params, fully_sharded()), (optimizer.init(params), fully_sharded()), (x, P("x")))


def mixture() -> Placed:
    """An EM step for a Gaussian mixture with sharded examples."""

    def step(means: jax.Array, logits: jax.Array, x: jax.Array) -> Any:
        components = distrax.MultivariateNormalDiag(means, jnp.ones_like(means))
        weights = jax.nn.softmax(components.log_prob(x[:, None]) + logits, -1)
        total = weights.sum(0)
        return (weights.T @ x) / total[:, None], jnp.log(total / total.sum())

    return placed(step, (normal(16, 64), P()), (np.zeros(16, np.float32), P()), (normal(512, 64), P("x")))


PROGRAMS: dict[str, Build] = {
    "Hamiltonian chains split, examples split": _sampled(hamiltonian, P("model"), P("data")),
    "Hamiltonian chains split, examples whole": _sampled(hamiltonian, P(("data", "model")), P()),
    "Langevin chains split, examples split": _sampled(langevin, P("model"), P("data")),
    "no-U-turn chains split": _sampled(no_u_turn, P(("data", "model")), P()),
    "leapfrog steps, examples split": leapfrog,
    "variational inference, examples split": variational,
    "flow of couplings, fully sharded": flow,
    "mixture by expectation and maximisation, examples split": mixture,
}
