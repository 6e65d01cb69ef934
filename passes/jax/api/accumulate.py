"""`sdy.accumulate`: gradients of a batch from the gradients of its microbatches, in the memory of one."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from math import gcd
from numbers import Integral
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import keystr, tree_flatten, tree_leaves_with_path, tree_unflatten

from sdy.type_helpers import Function

Tree = Any


@dataclass
class AutomaticMicrobatches:
    """The number that `microbatches=sdy.AUTO` stands for, and the rows of the batches that were accumulated with it."""

    number: int = 1
    rows: list[int] = field(default_factory=list[int])

    def in_(self, function: Function[Any]) -> Function[Any]:
        """Return a function that calls `function` with this number."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            token = _AUTOMATIC.set(self)
            try:
                return function(*args, **kwargs)
            finally:
                _AUTOMATIC.reset(token)

        return call

    def more(self) -> Iterator[int]:
        """Yield the larger powers of two that divide the rows of all batches; nothing without such a batch."""
        number = 2 * self.number
        while self.rows and gcd(*self.rows) % number == 0:
            yield number
            number *= 2


_AUTOMATIC: ContextVar[AutomaticMicrobatches | None] = ContextVar("automatic_microbatches", default=None)

MICROBATCH = "mpmd_microbatch"
"""The name of the functions of `jax.jit` that compute one microbatch of a pipeline."""

_PIPELINED: ContextVar[bool] = ContextVar("pipelined", default=False)


def with_pipelined_microbatches(function: Function[Any]) -> Function[Any]:
    """Return a function that calls `function` with the microbatches of `accumulate` as calls instead of a loop."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = _PIPELINED.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            _PIPELINED.reset(token)

    return call


def accumulate(
    function: Callable[..., Tree],
    params: Tree,
    *batch: Tree,
    microbatches: Any,
    reduce: Literal["mean", "sum"] = "mean",
) -> Tree:
    """Return the mean or the sum of `function(params, *microbatch)` over equal microbatches of `batch`.

        loss, gradients = sdy.accumulate(jax.value_and_grad(loss), params, x, y, microbatches=4)

    The microbatches run one after the other, so that a step needs the memory of one of them and of the results, under
    `jax.jit` as under `sdy.jit`. Under the `jit` of `sdy.mpmd.stages`, they go through the stages as a pipeline.

    A microbatch has every `microbatches`-th row. If the rows are sharded along mesh axes that divide the rows of a
    microbatch, each device keeps its rows, without communication. Random functions of the position of a row, and losses
    that weigh rows by others of the batch, see other rows than they do without microbatches.

    Args:
        function: Returns a tree of arrays, such as the value and the gradients of a mean over the rows.
        params: Its first argument.
        *batch: The other arguments: trees of arrays whose first dimension is that of the rows.
        microbatches: The number of microbatches; or `sdy.AUTO` in a function of `sdy.jit` with `in_shardings=sdy.AUTO`,
            which takes the one of 1, 2, 4, ... with the least predicted step time that fits into memory.
        reduce: "mean" for losses that are means over the rows, "sum" for those that are sums.

    Raises:
        ValueError: `microbatches` is less than 1 or does not divide the rows, arrays have different numbers of rows, or
            `reduce` is another word.
        TypeError: An array of `batch` has no dimensions, or `microbatches` is `sdy.AUTO` where nothing chooses it.
    """
    if reduce not in ("mean", "sum"):
        raise ValueError(f"reduce must be 'mean' or 'sum', not {reduce!r}")
    rows = _rows(batch)
    if not isinstance(microbatches, Integral):
        automatic = _AUTOMATIC.get()
        if automatic is None:
            raise TypeError(
                "microbatches=sdy.AUTO requires sdy.jit with in_shardings=sdy.AUTO; pass a number elsewhere"
            )
        automatic.rows.append(rows)
        microbatches = automatic.number
    microbatches = int(microbatches)
    if microbatches < 1 or rows % microbatches:
        names = ", ".join(name for name, _ in _named_leaves(batch))
        raise ValueError(f"microbatches={microbatches} does not divide the {rows} rows of {names}")
    if microbatches == 1:
        return function(params, *batch)

    scale = microbatches if reduce == "mean" else 1
    split = jax.tree.map(lambda leaf: _split(leaf, microbatches), batch)
    add_up = _sum_of_calls if _PIPELINED.get() else _sum_in_loop
    total = add_up(function, params, split)
    return jax.tree.map(lambda leaf: (leaf / scale).astype(leaf.dtype), total)


def _sum_in_loop(function: Callable[..., Tree], params: Tree, split: Sequence[Tree]) -> Tree:
    """Return the sum of the results over microbatches, as a loop."""

    def step(total: Tree, microbatch: Sequence[Tree]) -> tuple[Tree, None]:
        return jax.tree.map(jnp.add, total, function(params, *microbatch)), None

    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), split)
    types = jax.eval_shape(function, params, *one)
    return lax.scan(step, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), types), split)[0]


def _sum_of_calls(function: Callable[..., Tree], params: Tree, split: Sequence[Tree]) -> Tree:
    """Return the sum of the results over microbatches, as a call for each.

    A call adds to the total of those before it: Shardy's compiler would add up all results after the last call.
    """

    def microbatch(params: Tree, total: Tree | None, *batch: Tree) -> Tree:
        result = function(params, *batch)
        return result if total is None else jax.tree.map(jnp.add, total, result)

    microbatch.__name__ = MICROBATCH
    call = jax.jit(microbatch)
    leaves, tree = tree_flatten(split)
    total: Tree | None = None
    for each in zip(*leaves, strict=True):
        total = call(params, total, *tree_unflatten(tree, each))
    return total


def _split(leaf: jax.Array, microbatches: int) -> jax.Array:
    """Return an array with microbatches along a new first dimension, whose rows stay on their devices."""
    rows, *rest = leaf.shape
    return leaf.reshape(rows // microbatches, microbatches, *rest).swapaxes(0, 1)


def _named_leaves(batch: Sequence[Tree]) -> Sequence[tuple[str, Any]]:
    return [(f"batch{keystr(path)}", leaf) for path, leaf in tree_leaves_with_path(batch)]


def _rows(batch: Sequence[Tree]) -> int:
    """Return the number of rows of all arrays of `batch`."""
    leaves = _named_leaves(batch)
    for name, leaf in leaves:
        if not np.ndim(leaf):
            raise TypeError(f"{name} has no dimension of rows: pass it in `params`")
    sizes: dict[str, int] = {name: np.shape(leaf)[0] for name, leaf in leaves}
    if len({*sizes.values()}) != 1:
        raise ValueError(f"the arrays of the batch have different numbers of rows: {sizes}")
    return next(iter(sizes.values()))
