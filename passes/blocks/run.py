"""`sdy.blocks.run`: run a function or a program in blocks that fit in memory, on this machine or on a Dask cluster."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import tree_util
from xdsl.dialects.builtin import ModuleOp

from sdy.extras import explain_missing_extra
from sdy.formatting import parse_bytes
from sdy.ir.companions import clone
from sdy.passes.blocks.arrays import reader
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph
from sdy.passes.blocks.dask_graph import dask_arrays, stored_graph
from sdy.passes.blocks.fit_blocks import fit_blocks
from sdy.passes.blocks.graph import BlockGraph
from sdy.passes.blocks.schedule import run as run_graph
from sdy.passes.jax.api.positional_call import static_positions
from sdy.passes.jax.bindings.from_jax import from_jax

_WIDE = tuple(map(np.dtype, ("int64", "uint64", "float64", "complex128")))

BLOCKS_IN_MEMORY = 4
"""The number of the largest blocks that fit in memory at once, by default."""


def run(
    program: ModuleOp | Callable[..., Any],
    *arguments: Any,
    memory: int | str = "1G",
    scheduler: Any = None,
    store: str | Path | None = None,
    block_bytes: int | str | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """Run a program in blocks that fit in memory.

    Operations are fused and divided into blocks. A block reads its regions of the arguments and of intermediate values,
    which are spilled to a temporary file when memory is short.

    Args:
        program: A function of JAX arrays, which is traced, with 64-bit types if an argument has one; or a StableHLO
            module.
        *arguments: The arguments: arrays of NumPy, JAX, Zarr or Dask, or paths of `.npy` files or Zarr arrays; pytrees
            of them for a function.
        memory: The memory limit in bytes, or as text such as `64M`. With `scheduler`, it determines the size of blocks;
            workers spill chunks to files at their own limits.
        scheduler: A `distributed.Client`, or the address of a scheduler with `store`; None runs in this process.
        store: Folder of a Zarr group to write the results to, as `result0` and so on. A run that was interrupted goes
            on from the chunks that are stored there.
        block_bytes: The maximal size of a block; a quarter of `memory` by default.
        static_argnums: The positions of the arguments of a function that are constants, as in `jax.jit`.

    Returns:
        The results as Zarr arrays with `store`, as `dask.array`s with `scheduler`, else as NumPy arrays: a pytree as
        the function returns it, or a list for a module. Random keys are their integers.

    Raises:
        DiagnosticError: The program is invalid, or a block of an operation exceeds the limit.
        TypeError: A module is given static arguments.
        ValueError: An argument has another shape or element type than its parameter, or a file is not an array, or
            `scheduler` is an address and `store` is missing, or `memory` or `block_bytes` is no size.
        FileExistsError: `store` has other contents than results.

    Example:
        >>> z = sdy.blocks.run(lambda x, y: jnp.tanh(x @ y), "x.npy", "y.npy", memory="64M", store="z.zarr")
    """
    limit = _bytes(memory, "memory")
    program, arguments = _without_static(program, arguments, static_argnums)
    given, tree = tree_util.tree_flatten(arguments)
    module, unflatten = _traced(program, given, tree)
    leaves = [*map(_array, given)]
    most = max(limit // BLOCKS_IN_MEMORY, 1) if block_bytes is None else _bytes(block_bytes, "block_bytes")
    fit_blocks(module, most)
    graph = block_graph(module, within(most))
    if scheduler is not None:
        return unflatten(run_on_dask(graph, leaves, scheduler, store))
    results, _ = run_graph(graph, leaves, limit, None if store is None else Path(store))
    return unflatten(results)


def _without_static(
    program: ModuleOp | Callable[..., Any], arguments: tuple[Any, ...], numbers: int | Sequence[int]
) -> tuple[ModuleOp | Callable[..., Any], tuple[Any, ...]]:
    """Return the program as a function of the arguments that are not static, and these."""
    static = static_positions((), len(arguments), {"static_argnums": numbers}) if arguments else set[int]()
    if not static:
        return program, arguments
    if isinstance(program, ModuleOp):
        raise TypeError("the arguments of a module are arrays: it has no static ones")

    def call(*given: Any) -> Any:
        others = iter(given)
        return program(*(value if index in static else next(others) for index, value in enumerate(arguments)))

    return call, tuple(value for index, value in enumerate(arguments) if index not in static)


def run_on_dask(graph: BlockGraph, arguments: Sequence[Any], scheduler: Any, store: str | Path | None) -> list[Any]:
    """Return the results of a program as `dask.array`s; compute them on a cluster, as Zarr arrays, with `store`."""
    if store is None:
        if isinstance(scheduler, str):
            raise ValueError("the address of a scheduler needs `store`; for results as `dask.array`s, pass a Client")
        return dask_arrays(graph, arguments)
    with explain_missing_extra("a Dask cluster"):
        from distributed import Client
    client: Any
    tasks, keys, arrays = stored_graph(graph, arguments, Path(store))
    with Client(scheduler) if isinstance(scheduler, str) else nullcontext(scheduler) as client:
        client.get(tasks, keys, resources=_resources(graph, client))
    return arrays


def _resources(graph: BlockGraph, client: Any) -> dict[str, float] | None:
    """Return the memory of a task, for workers that declare how much of the resource "memory" they have."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers or any("memory" not in worker["resources"] for worker in workers):
        return None
    return {"memory": max((shard.nbytes for shard in graph.shards()), default=0)}


def _bytes(size: int | str, name: str) -> int:
    if isinstance(size, str):
        return parse_bytes(size)
    if size < 1:
        raise ValueError(f"'{name}' is {size}; it must be at least 1 byte, or a size such as \"64M\"")
    return size


def _array(argument: Any) -> Any:
    """Return an argument as an array or a file: numbers have the types that JAX gives them, and keys are integers."""
    if isinstance(argument, bool | int | float | complex):
        return np.asarray(jnp.asarray(argument))
    return jax.random.key_data(argument) if _is_key(argument) else argument


def _typed(argument: Any) -> Any:
    """Return an object with the shape and the element type of an argument."""
    return argument if _is_key(argument) else reader(_array(argument))


def _is_key(argument: Any) -> bool:
    return isinstance(argument, jax.Array) and jnp.issubdtype(argument.dtype, jax.dtypes.prng_key)


def _is_of_jax(dtype: Any) -> bool:
    """Return whether JAX has an element type: numbers of NumPy but its longest, those of ml_dtypes, and keys."""
    if not isinstance(dtype, np.dtype):
        return True
    is_number = dtype.kind in "biufc" and dtype.name not in ("float96", "float128", "complex192", "complex256")
    return is_number or hasattr(ml_dtypes, dtype.name)


def _traced(
    program: ModuleOp | Callable[..., Any], leaves: Sequence[Any], tree: Any
) -> tuple[ModuleOp, Callable[[list[Any]], Any]]:
    """Return the module of a program, and a function that arranges its results."""
    if isinstance(program, ModuleOp):
        return clone(program), lambda results: results

    def call(*given: Any) -> Any:
        return program(*given)

    typed = [*map(_typed, leaves)]
    for number, each in enumerate(typed):
        if not _is_of_jax(each.dtype):
            raise ValueError(f"argument {number} has elements of type {each.dtype}, which JAX does not compute with")
        if any(size != size for size in each.shape):
            raise ValueError(f"argument {number} has chunks of unknown sizes; call compute_chunk_sizes()")
    types = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in typed]
    arguments = tree_util.tree_unflatten(tree, types)
    with jax.enable_x64(jax.config.jax_enable_x64 or any(each.dtype in _WIDE for each in types)):
        results = tree_util.tree_structure(jax.eval_shape(program, *arguments))
        module = from_jax(jax.jit(call, keep_unused=True), *arguments)
    return module, lambda arrays: tree_util.tree_unflatten(results, arrays)
