"""torchax environment that keeps batch dimensions of matrix products separate.

torch collapses the batch dimensions of a matrix product, such as batch and heads, into one. If both are sharded, a
device's shard is not a contiguous part of the collapsed dimension, and would have to be gathered.
"""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import torch
from torchax.ops import jtorch
from torchax.tensor import Environment, Tensor
from torchax.view import View


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
