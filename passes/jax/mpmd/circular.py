"""Circular pipelines as one SPMD program: `sdy.mpmd.circular`.

The stages are a dimension of the program, which a mesh axis shards. At each tick all stages compute, each on another
microbatch, and their results move to the next stage: a roll along the dimension, which is a collective permute. With
three stages and four microbatches, the stages compute

    tick      0  1  2  3  4  5
    stage 0   0  1  2  3  .  .
    stage 1   .  0  1  2  3  .
    stage 2   .  .  0  1  2  3

The dots are the bubble: values that no result depends on. Source: Xu et al., "GSPMD" (2021), section 3.3.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import keystr, tree_leaves_with_path

Tree = Any


def circular(stage: Callable[[Tree, Tree], Tree], params: Tree, xs: Tree, *, repeats: int = 1) -> Tree:
    """Apply equal stages one after the other to each microbatch, as a pipeline within one program.

    Works in `sdy.jit` and in `jax.jit`. Shard the dimension of stages of `params` along a mesh axis: the layers of a
    stage are then computed on its devices, and results move between neighbors.

    A part of (stages - 1) / (repeats * microbatches + stages - 1) of the computation is the bubble.
    `jax.checkpoint(stage)` holds only the inputs of stages for the gradient.

    Args:
        stage: Return the result of a stage, given its parameters and its input. The result has the input's type.
        params: The parameters: leaves of shape (stages, ...), or (repeats, stages, ...) with several repeats.
        xs: The microbatches: leaves of shape (microbatches, ...).
        repeats: How often a microbatch goes around; time r at stage s applies `params[r, s]`. At least as many
            microbatches as stages are then needed.

    Returns:
        The results of the last stage, in the order of the microbatches.

    Raises:
        ValueError: Leaves disagree about the number of stages, repeats or microbatches, there are fewer microbatches
            than stages with several repeats, or `stage` returns another type than its input's.

    Example:
        >>> ys = sdy.mpmd.circular(lambda w, x: jnp.tanh(x @ w), weights, microbatches)
    """
    if repeats < 1:
        raise ValueError(f"circular: 'repeats' is {repeats}; it must be at least 1")
    params, xs = jax.tree.map(jnp.asarray, (params, xs))
    (microbatches,) = _common_sizes(xs, (None,), "xs", "microbatches")
    if repeats == 1:
        (stages,) = _common_sizes(params, (None,), "params", "stages")
        params = jax.tree.map(lambda leaf: leaf[None], params)
    else:
        _, stages = _common_sizes(params, (repeats, None), "params", "repeats and stages")
    if repeats > 1 and microbatches < stages:
        raise ValueError(
            f"circular: {microbatches} microbatches are fewer than the {stages} stages; with several repeats, stage 0 "
            f"would wait for the last stage"
        )
    _check_type(stage, params, xs)
    ticks = repeats * microbatches + stages - 1
    numbers = jnp.arange(stages)

    def tick(carry: tuple[Tree, Tree], time: jax.Array) -> tuple[tuple[Tree, Tree], Tree]:
        arrived, waiting = carry
        if repeats > 1:
            waiting = jax.tree.map(lambda queue, value: _store(queue, value, time, stages), waiting, arrived)
        first = jax.tree.map(lambda queue: queue[:, time % microbatches], waiting)
        inputs = jax.tree.map(lambda new, old: jnp.where(_along_first(numbers == 0, new), new, old), first, arrived)
        turns = jnp.clip((time - numbers) // microbatches, 0, repeats - 1)
        own = jax.tree.map(lambda leaf: leaf[0] if repeats == 1 else _select(leaf, turns), params)
        outputs = jax.vmap(stage)(own, inputs)
        return (jax.tree.map(lambda value: jnp.roll(value, 1, axis=0), outputs), waiting), outputs

    # The bubble computes on a microbatch: derivatives at zero may be infinite, and zero times infinity is not a number.
    arrived = jax.tree.map(lambda leaf: lax.stop_gradient(jnp.broadcast_to(leaf[0], (stages, *leaf.shape[1:]))), xs)
    # The queue of stage 0 has the microbatches; the others have one, too, so that the dimension of stages is sharded.
    waiting = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (stages, *leaf.shape)), xs)
    with jax.named_scope("circular"):
        _, results = lax.scan(tick, (arrived, waiting), jnp.arange(ticks))
    return jax.tree.map(lambda leaf: leaf[ticks - microbatches :, -1], results)


def _store(queue: jax.Array, value: jax.Array, time: jax.Array, stages: int) -> jax.Array:
    """Store what arrives at stage 0 in the queue of microbatches, once the first one has gone around."""
    place = (time - stages) % queue.shape[1]
    kept = jnp.where(time >= stages, value, lax.dynamic_index_in_dim(queue, place, 1, keepdims=False))
    return lax.dynamic_update_index_in_dim(queue, kept, place, 1)


def _select(leaf: jax.Array, turns: jax.Array) -> jax.Array:
    """Select for each stage the parameters of its repeat."""
    return jax.vmap(lambda own, turn: lax.dynamic_index_in_dim(own, turn, 0, keepdims=False), (1, 0))(leaf, turns)


def _along_first(mask: jax.Array, like: jax.Array) -> jax.Array:
    return mask.reshape(-1, *[1] * (like.ndim - 1))


def _common_sizes(tree: Tree, wanted: tuple[int | None, ...], name: str, what: str) -> tuple[int, ...]:
    """Return the first sizes of all leaves; `wanted` has those that are known."""
    leaves = tree_leaves_with_path(tree)
    if not leaves:
        raise ValueError(f"circular: '{name}' has no arrays")
    sizes = leaves[0][1].shape[: len(wanted)]
    for path, leaf in leaves:
        own = leaf.shape[: len(wanted)]
        if len(own) < len(wanted) or any(size not in (None, each) for size, each in zip(wanted, own, strict=True)):
            raise ValueError(
                f"circular: {name}{keystr(path)} of shape {leaf.shape} must begin with the numbers of {what}: "
                f"{', '.join('any' if size is None else str(size) for size in wanted)}"
            )
        if own != sizes:
            first = f"{name}{keystr(leaves[0][0])} of shape {leaves[0][1].shape}"
            raise ValueError(
                f"circular: {name}{keystr(path)} of shape {leaf.shape} and {first} have different numbers of {what}; "
                f"all stages must be equal"
            )
    return sizes


def _check_type(stage: Callable[[Tree, Tree], Tree], params: Tree, xs: Tree) -> None:
    """Raise if `stage` does not return its input's type."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), params)
    given = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), xs)
    result = jax.eval_shape(stage, one, given)
    if _describe(result) != _describe(given):
        raise ValueError(
            f"circular: the stage returns {_describe(result)} for an input of {_describe(given)}; the result must have "
            f"the type of the input, which the next stage receives"
        )


def _describe(tree: Tree) -> Tree:
    """Return the tree with the type of each array as text."""
    return jax.tree.map(lambda leaf: f"{leaf.dtype}{[*leaf.shape]}", tree)
