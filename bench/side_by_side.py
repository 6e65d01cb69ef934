"""Comparison of the costs and results of a program under `sdy.jit` and `jax.jit`."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import sdy
from placed import Placed
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.program.inputs import rounded_otherwise
from sdy.passes.jax.program.rounding import Rounding, first_mismatch

_ELEMENT = 4
"""The minimal bytes in a ratio, which avoids division by zero."""


@dataclass(frozen=True)
class Cost:
    """The cost of a compiled program.

    Attributes:
        received: The bytes received by a device in collectives.
        memory: The bytes of arguments, results and temporaries of a device.
        seconds: The processor seconds of compilation.
    """

    received: float
    memory: int
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """The costs of a program under both, the results with different shardings, and the first mismatch, if any."""

    sdy: Cost
    jax: Cost
    other_shardings: tuple[str, ...]
    mismatch: str | None

    @property
    def received(self) -> float:
        """The ratio sdy / jax of bytes received."""
        return max(self.sdy.received, _ELEMENT) / max(self.jax.received, _ELEMENT)

    @property
    def memory(self) -> float:
        return max(self.sdy.memory, _ELEMENT) / max(self.jax.memory, _ELEMENT)

    @property
    def seconds(self) -> float:
        return self.sdy.seconds / self.jax.seconds


def compare(program: Placed, by_us: Callable[..., Any] = sdy.jit, say: Callable[[str], None] = print) -> Comparison:
    """Compile and run `program` with `jax.jit` and with `by_us`; `say` is called with the name of each stage."""
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
    """Return the lowered program, its cost, its results, and a function that reruns it with perturbed arguments."""
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
    def perturb(leaf: jax.Array) -> jax.Array:
        if _is_key(leaf):
            return leaf
        return jax.device_put(rounded_otherwise([np.asarray(leaf)], relative)[0], leaf.sharding)

    return jax.tree.map(perturb, arguments)


def _arrays(results: Any) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Convert the results to NumPy; random keys to their integer data."""
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
    wrong = first_mismatch(_arrays(results), _arrays(expected), rounding, again)
    if wrong is None:
        return None
    path, _ = jax.tree_util.tree_leaves_with_path(results)[wrong.result]
    place = f"{jax.tree_util.keystr(path)}{list(wrong.index)}"
    return f"{place}: {wrong.value} not {wrong.wanted}, by more than {wrong.allowed:.2g}"
