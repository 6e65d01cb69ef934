"""What torch's operations are in jax: torchax's environment, with products that keep the dimensions of a batch apart.

torch itself makes one dimension of all that a product of matrices has besides theirs, such as a batch and its heads.
Where both are split, the devices' parts of them are no part of that one, and would have to be gathered.
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
    """The environment, made when it is first asked for."""
    made = Environment()

    def matmul(x: Tensor | View, y: Tensor | View) -> Tensor:
        return Tensor(jnp.matmul(x.jax(), y.jax()), made)

    def attention(*args: Any, **kwargs: Any) -> Any:
        with made:  # so that its products are those from here
            return jtorch.scaled_dot_product_attention(*args, **kwargs)

    for name in (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__):
        made.override_op_definition(name, matmul)
    made.override_op_definition(torch.nn.functional.scaled_dot_product_attention, attention)
    return made
