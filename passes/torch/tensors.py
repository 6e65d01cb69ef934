"""Conversion between torch tensors and arrays, in a torchax environment that keeps batch dimensions separate.

torch collapses the batch dimensions of a matrix product, such as batch and heads, into one. If both are sharded, a
device's shard is not a contiguous part of the collapsed dimension, and would have to be gathered.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torchax.ops import jtorch
from torchax.ops.mappings import j2t, t2j_dtype
from torchax.tensor import Environment, Tensor
from torchax.view import View

_NARROWER = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in {
        "int64": "int32",
        "uint64": "uint32",
        "float64": "float32",
        "complex128": "complex64",
    }.items()
}
"""JAX's element type for each 64-bit type, unless 64-bit types are enabled."""


def to_array(tensor: torch.Tensor) -> Any:
    """Convert `tensor` for JAX: return the array of a torchax tensor, or a copy on the host of a torch tensor.

    Returns:
        The array, or a `jax.ShapeDtypeStruct` for a meta tensor.

    Raises:
        TypeError: JAX would round floating-point elements, as 64-bit types are disabled.
        OverflowError: Integers do not fit JAX's element type, as 64-bit types are disabled.
    """
    if isinstance(tensor, Tensor | View):
        return tensor.jax()
    dtype = t2j_dtype(tensor.dtype)
    known = dtype if jax.config.jax_enable_x64 else _NARROWER.get(dtype, dtype)
    enable = "enable 64-bit types with jax.config.update('jax_enable_x64', True)"
    if known != dtype and (tensor.is_floating_point() or tensor.is_complex()):
        raise TypeError(f"JAX would round {tensor.dtype} to {known}: convert the tensor first, or {enable}")
    if tensor.is_meta:
        return jax.ShapeDtypeStruct(tuple(tensor.shape), known)
    host = tensor.detach().cpu()
    array = (host.float() if dtype.kind == "V" else host).numpy().copy()  # torch's NumPy has no bfloat16
    if known != dtype and array.size and not np.can_cast(np.min_scalar_type(abs(array).max()), known):
        raise OverflowError(f"integers of {tensor.dtype} are too large for {known}: {enable}")
    return array.astype(known)


def as_arrays(tree: Any) -> Any:
    """Convert the tensors of a tree with `to_array`; other leaves are kept."""
    return jax.tree.map(lambda leaf: to_array(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)


def as_tensors(tree: Any) -> Any:
    """Convert the arrays of a tree to torch tensors, copies of the full arrays."""
    return jax.tree.map(lambda leaf: j2t(np.array(leaf), use_dlpack=False), tree)


def as_traced(tree: Any) -> Any:
    """Wrap the traced arrays of a tree as torchax tensors."""
    return jax.tree.map(lambda leaf: Tensor(leaf, environment()), tree)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment, created on first use."""
    env = Environment()

    def matmul(x: Tensor | View, y: Tensor | View) -> Tensor:
        return Tensor(jnp.matmul(x.jax(), y.jax()), env)

    def attention(*args: Any, **kwargs: Any) -> Any:
        with env:  # so that it uses `matmul` from here
            return jtorch.scaled_dot_product_attention(*args, **kwargs)

    for name in (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__):
        env.override_op_definition(name, matmul)
    env.override_op_definition(torch.nn.functional.scaled_dot_product_attention, attention)
    return env
