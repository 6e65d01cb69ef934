"""Tensors of torch as arrays, and back."""

from typing import Any

import jax
import numpy as np
import torch
from torchax.ops.mappings import j2t, t2j_dtype
from torchax.tensor import Tensor
from torchax.view import View

from sdy.passes.torch.environment import environment

_NARROWER = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in {
        "int64": "int32",
        "uint64": "uint32",
        "float64": "float32",
        "complex128": "complex64",
    }.items()
}
"""What jax has of element types, unless it is set up for 64 bits."""


def to_array(tensor: torch.Tensor) -> Any:
    """`tensor` for jax: the array that torchax computes with; a copy on the host of one of torch's own.

    Of a meta tensor, which has no elements, that is what is known of it. Raises TypeError for floating-point elements
    that jax would round, as it is set up, and OverflowError for integers that it cannot hold.
    """
    if isinstance(tensor, Tensor | View):
        return tensor.jax()
    dtype = t2j_dtype(tensor.dtype)
    known = dtype if jax.config.jax_enable_x64 else _NARROWER.get(dtype, dtype)
    allow = "jax.config.update('jax_enable_x64', True) lets jax have it"
    if known != dtype and (tensor.is_floating_point() or tensor.is_complex()):
        raise TypeError(f"jax would round {tensor.dtype} to {known}: convert the tensor before, or {allow}")
    if tensor.is_meta:
        return jax.ShapeDtypeStruct(tuple(tensor.shape), known)
    host = tensor.detach().cpu()
    array = (host.float() if dtype.kind == "V" else host).numpy().copy()  # torch's NumPy has no bfloat16
    if known != dtype and array.size and not np.can_cast(np.min_scalar_type(abs(array).max()), known):
        raise OverflowError(f"integers of {tensor.dtype} are too large for {known}: {allow}")
    return array.astype(known)


def as_arrays(tree: Any) -> Any:
    """A tree with arrays, as of `to_array`, for its tensors; all else is as it was."""
    return jax.tree.map(lambda leaf: to_array(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)


def as_tensors(tree: Any) -> Any:
    """A tree with tensors of torch, which are copies of the whole arrays, for its arrays."""
    return jax.tree.map(lambda leaf: j2t(np.array(leaf), use_dlpack=False), tree)


def as_traced(tree: Any) -> Any:
    """A tree with what torch computes with, within torchax, for arrays that jax traces."""
    return jax.tree.map(lambda leaf: Tensor(leaf, environment()), tree)
