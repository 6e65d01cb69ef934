"""Reinforcement learning with rlax and distrax."""

from typing import Any

import distrax
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax
from jax import lax
from jax.sharding import PartitionSpec as P

from drop_in_programs.steps import train_step
from placed import Build, Placed, filled, fully_sharded, integers, normal, placed

_KEY = jax.random.key(0)
_ACTORS, _STEPS, _WIDTH, _ACTIONS = 64, 16, 64, 8


def actor_and_critic(observations: jax.Array) -> Any:
    x = hk.nets.MLP([256, 256], activation=jnp.tanh, activate_final=True)(observations)
    return hk.Linear(_ACTIONS)(x), hk.Linear(1)(x)[..., 0]


def _made(network: Any, rule: Any) -> tuple[Any, Any, Any]:
    """Return the network, an optimizer, and the sharded parameters and optimizer state."""
    made, optimizer = hk.without_apply_rng(hk.transform(network)), optax.adam(1e-3)
    params = filled(jax.eval_shape(made.init, _KEY, normal(_ACTORS, _WIDTH)))
    return made.apply, optimizer, ((params, rule), (optimizer.init(params), rule))


def _trajectories() -> tuple[Any, ...]:
    """Return observations, actions, rewards, discounts and log-likelihoods, (time, actors, ...)."""
    steps = (_STEPS, _ACTORS)
    discounts = np.full(steps, 0.99, np.float32)
    return (
        normal(_STEPS + 1, _ACTORS, _WIDTH),
        integers(*steps, below=_ACTIONS),
        normal(*steps, seed=1),
        discounts,
        -2 + 0.1 * normal(*steps, seed=2),
    )


def _proximal(rule: Any) -> Build:
    """PPO: four epochs over a trajectory, each a step."""

    def build() -> Placed:
        apply, optimizer, kept = _made(actor_and_critic, rule)

        def loss(params: Any, observations: Any, actions: Any, rewards: Any, discounts: Any, likelihoods: Any) -> Any:
            logits, values = apply(params, observations)
            advantages = jax.vmap(rlax.truncated_generalized_advantage_estimation, (1, 1, None, 1), 1)(
                rewards, discounts, 0.95, lax.stop_gradient(values)
            )
            policy = distrax.Categorical(logits[:-1])
            ratio = jnp.exp(policy.log_prob(actions) - likelihoods)
            normalized = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
            policy_loss = jnp.minimum(ratio * normalized, jnp.clip(ratio, 0.8, 1.2) * normalized).mean()
            wanted = advantages + lax.stop_gradient(values[:-1])
            return jnp.mean((values[:-1] - wanted) ** 2) - policy_loss - 0.01 * policy.entropy().mean()

        step = train_step(optimizer, loss)

        def passes(params: Any, state: Any, *data: Any) -> Any:
            def one(carry: Any, _: None) -> Any:
                *carry, value = step(*carry, *data)
                return tuple(carry), value

            return lax.scan(one, (params, state), None, length=4)

        return placed(passes, *kept, *((array, P(None, "x")) for array in _trajectories()))

    return build


def importance_weighted() -> Placed:
    """IMPALA: V-trace along time, with sharded actors."""
    apply, optimizer, kept = _made(actor_and_critic, fully_sharded())

    def loss(params: Any, observations: Any, actions: Any, rewards: Any, discounts: Any, likelihoods: Any) -> Any:
        logits, values = apply(params, observations)
        now = distrax.Categorical(logits[:-1]).log_prob(actions)
        returns = jax.vmap(rlax.vtrace_td_error_and_advantage, 1, 1)(
            values[:-1], values[1:], rewards, discounts, lax.stop_gradient(jnp.exp(now - likelihoods))
        )
        return jnp.mean(returns.errors**2) - jnp.mean(now * lax.stop_gradient(returns.pg_advantage))

    return placed(train_step(optimizer, loss), *kept, *((array, P(None, "x")) for array in _trajectories()))


def double_q_learning() -> Placed:
    """Double DQN with a batch sampled from a sharded replay buffer within the step."""
    apply, optimizer, kept = _made(lambda x: hk.nets.MLP([256, 256, _ACTIONS])(x), fully_sharded())

    def loss(params: Any, target: Any, before: Any, action: Any, reward: Any, after: Any) -> jax.Array:
        errors = jax.vmap(rlax.double_q_learning)(
            apply(params, before),
            action,
            reward,
            jnp.full_like(reward, 0.99),
            apply(target, after),
            apply(params, after),
        )
        return jnp.mean(rlax.huber_loss(errors))

    learn = train_step(optimizer, loss)

    def step(params: Any, state: Any, target: Any, key: jax.Array, *buffer: Any) -> Any:
        drawn = jax.random.randint(key, (128,), 0, len(buffer[0]))
        params, state, value = learn(params, state, target, *(array[drawn] for array in buffer))
        return params, state, optax.incremental_update(params, target, 0.01), value

    size = 1024
    buffer = (normal(size, _WIDTH), integers(size, below=_ACTIONS), normal(size, seed=1), normal(size, _WIDTH, seed=2))
    return placed(step, *kept, kept[0], (_KEY, P()), *((array, P("x")) for array in buffer))


def rollout() -> Placed:
    """Policy gradient through a rollout of many environments with sampled actions."""
    apply, _, kept = _made(actor_and_critic, P())

    def loss(params: Any, worlds: jax.Array, dynamics: jax.Array, key: jax.Array) -> jax.Array:
        def step(worlds: jax.Array, key: jax.Array) -> Any:
            policy = distrax.Categorical(apply(params, worlds)[0])
            action, likelihood = policy.sample_and_log_prob(seed=key)
            worlds = jnp.tanh(worlds @ dynamics + jax.nn.one_hot(action, _WIDTH))
            return worlds, (likelihood, worlds[:, 0])

        _, (likelihoods, rewards) = lax.scan(step, worlds, jax.random.split(key, _STEPS))
        returns = jnp.flip(jnp.cumsum(jnp.flip(rewards, 0), 0), 0)
        return -jnp.mean(likelihoods * (returns - returns.mean(1, keepdims=True)))

    worlds = ((normal(_ACTORS, _WIDTH), P("x")), (normal(_WIDTH, _WIDTH, scale=0.1), P()), (_KEY, P()))
    return placed(jax.value_and_grad(loss), kept[0], *worlds)


PROGRAMS: dict[str, Build] = {
    "PPO, actors split": _proximal(P()),
    "PPO, actors split, fully sharded": _proximal(fully_sharded()),
    "V-trace, actors split, fully sharded": importance_weighted,
    "double Q learning from a replay buffer that is split": double_q_learning,
    "policy gradient through many worlds": rollout,
}
