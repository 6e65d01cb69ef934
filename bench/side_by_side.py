"""What a program costs under `sdy.jit` and under `jax.jit`, and whether both give the same."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from placed import Placed

import sdy
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.inputs import rounded_otherwise
from sdy.passes.jax.rounding import Rounding, first_mismatch

_ELEMENT = 4
"""Bytes that count where there are none, so that there is a ratio."""


@dataclass(frozen=True)
class Cost:
    """Of a compiled program: the bytes that a device receives in its collectives, the bytes of memory that it needs
    for arguments, results and what lies between, and the seconds of all processors that compiling it took."""

    received: float
    memory: int
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """A program under both; of its results those whose shardings differ, and the first number that does, if any."""

    sdy: Cost
    jax: Cost
    other_shardings: tuple[str, ...]
    mismatch: str | None

    @property
    def received(self) -> float:
        """The bytes that a device receives, sdy's to jax's."""
        return max(self.sdy.received, _ELEMENT) / max(self.jax.received, _ELEMENT)

    @property
    def memory(self) -> float:
        return max(self.sdy.memory, _ELEMENT) / max(self.jax.memory, _ELEMENT)

    @property
    def seconds(self) -> float:
        return self.sdy.seconds / self.jax.seconds


def compare(program: Placed, by_us: Callable[..., Any] = sdy.jit, say: Callable[[str], None] = print) -> Comparison:
    """Compile and run `program` with `jax.jit` and with `by_us`; `say` is told which of them has its turn."""
    with jax.set_mesh(program.mesh):
        say("jax.jit")
        _, theirs, expected, again = _run(jax.jit, program)
        say("sdy.jit")
        lowered, ours, results, _ = _run(by_us, program)
        say("comparison")
        rounding = Rounding.of(lowered.module)
        return Comparison(
            ours, theirs, _other_shardings(results, expected), _mismatch(results, expected, rounding, again)
        )


def _run(jit: Callable[..., Any], program: Placed) -> tuple[Any, Cost, Any, Callable[[float], Any]]:
    """The program as it is lowered, what it costs, its results, and what gives those of arguments rounded otherwise."""
    jax.clear_caches()
    gc.collect()
    start = process_time()
    lowered = jit(program.function).lower(*program.arguments)
    compiled = lowered.compile()
    seconds = process_time() - start
    memory = compiled.memory_analysis()
    needed = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    cost = Cost(bytes_received(compiled.as_text(), program.mesh.size), needed - memory.alias_size_in_bytes, seconds)

    def again(relative: float) -> Any:
        return _arrays(compiled(*_rounded_otherwise(program.arguments, relative)))

    return lowered, cost, jax.block_until_ready(compiled(*program.arguments)), again


def _rounded_otherwise(arguments: Any, relative: float) -> Any:
    def change(leaf: jax.Array) -> jax.Array:
        if _is_key(leaf):
            return leaf
        return jax.device_put(rounded_otherwise([np.asarray(leaf)], relative)[0], leaf.sharding)

    return jax.tree.map(change, arguments)


def _arrays(results: Any) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """The results as NumPy has them; of random keys, their numbers."""
    return [np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for leaf in jax.tree.leaves(results)]


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _other_shardings(results: Any, expected: Any) -> tuple[str, ...]:
    pairs = zip(jax.tree_util.tree_leaves_with_path(results), jax.tree.leaves(expected), strict=True)
    return tuple(
        f"{jax.tree_util.keystr(path)}: {result.sharding.spec} not {wanted.sharding.spec}"
        for (path, result), wanted in pairs
        if not result.sharding.is_equivalent_to(wanted.sharding, result.ndim)
    )


def _mismatch(results: Any, expected: Any, rounding: Rounding, again: Callable[[float], Sequence[Any]]) -> str | None:
    found = first_mismatch(_arrays(results), _arrays(expected), rounding, again)
    if found is None:
        return None
    path, _ = jax.tree_util.tree_leaves_with_path(results)[found.result]
    place = f"{jax.tree_util.keystr(path)}{list(found.index)}"
    return f"{place}: {found.value} not {found.wanted}, by more than {found.allowed:.2g}"
