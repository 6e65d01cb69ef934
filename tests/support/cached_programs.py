"""`python cached_programs.py FOLDER`: functions for tests of jax's persistent compilation cache, which is FOLDER.

Prints as JSON, for each function, the number of partitionings and of warnings, and the results.
"""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any
from warnings import catch_warnings, simplefilter

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.ir import Operation

import sdy
from sdy.passes.jax.api import compiler
from sdy.passes.jax.compilation import PropagatedProgram
from sdy.passes.jax.compiler_context import Compiler
from sdy.passes.jax.jax_internals import ToCompile


def mesh(*, backwards: bool = False) -> Mesh:
    devices = np.array(jax.devices()[::-1] if backwards else jax.devices())
    return Mesh(devices.reshape(4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def product(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    return (a @ a.T).sum(0), a * 2


def twice(a: jax.Array) -> jax.Array:
    return a * 2


doubled = custom_partitioning(twice)


def _partitioned(mesh: Any, args: Any, result: Any) -> Any:
    return mesh, twice, result.sharding, (args[0].sharding,)


doubled.def_partition(_partitioned, sharding_rule="i j -> i j")


def factor(a: jax.Array) -> jax.Array:
    return jnp.linalg.cholesky(a, symmetrize_input=False)


def annotated(a: jax.Array) -> jax.Array:
    """Call a custom-call target whose sharding rule a plugin could register."""
    product: Any = getattr(jax.lax.linalg, "householder_product")  # noqa: B009
    return product(a, a[0])


def nothing(operations: Sequence[Operation]) -> None:
    """Apply a policy that shards nothing."""


CALLS: dict[str, Callable[[], Any]] = {
    "first": lambda: called(sdy.jit(product), mesh()),
    "again": lambda: called(sdy.jit(product), mesh()),
    "other devices": lambda: called(sdy.jit(product), mesh(backwards=True)),
    "other shape": lambda: called(sdy.jit(product), mesh(), rows=16),
    "not compared": lambda: called(sdy.jit(product, compare_layouts=False), mesh()),
    "policy": lambda: called(sdy.jit(product, policy=nothing), mesh()),
    "policy again": lambda: called(sdy.jit(product, policy=nothing), mesh()),
    "custom partitioning": lambda: called(sdy.jit(doubled), mesh()),
    "custom partitioning again": lambda: called(sdy.jit(doubled), mesh()),
    "annotated": lambda: called(sdy.jit(annotated), mesh()),
    "annotated again": lambda: called(sdy.jit(annotated), mesh()),
    "told": lambda: called(sdy.jit(factor, out_shardings=NamedSharding(mesh(), P("x"))), mesh(), columns=8),
    "told again": lambda: called(sdy.jit(factor, out_shardings=NamedSharding(mesh(), P("x"))), mesh(), columns=8),
    "one device": lambda: sdy.jit(product)(jnp.ones((8, 4))),
}


def called(function: Callable[..., Any], mesh: Mesh, rows: int = 8, columns: int = 4) -> Any:
    array = jnp.arange(1.0 * rows * columns).reshape(rows, columns) + 100 * jnp.eye(rows, columns)
    return function(jax.device_put(array, NamedSharding(mesh, P("x"))))


def main(folder: str, names: Sequence[str]) -> None:
    """Run the calls `names`, or all if there are none."""
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    times = 0

    class Counted(PropagatedProgram):
        @classmethod
        def of(cls, lowered: ToCompile, compilers: Sequence[Compiler]) -> PropagatedProgram:
            nonlocal times
            times += 1
            return super().of(lowered, compilers)

    compiler.PropagatedProgram = Counted
    found: dict[str, Any] = {}
    for name in names or CALLS:
        jax.clear_caches()
        before = times
        with catch_warnings(record=True) as told:
            simplefilter("always")
            results = jax.tree.leaves(CALLS[name]())
        shown = [[str(result.sharding), np.asarray(result).tolist()] for result in results]
        found[name] = {"made": times - before, "told": len(told), "results": shown}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
