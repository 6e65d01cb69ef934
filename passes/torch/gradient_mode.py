"""What torch does to gradients besides its operations, done where jax differentiates.

torch notes on each tensor how to differentiate it; jax differentiates the program. What torch computes under
`torch.no_grad()` is a constant to it. A parameter that the loss does not use has no gradient at all, and its optimizer
leaves it alone, where jax has a gradient of zeros.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torchax.view import View

_SETTING = "_set_grad_enabled"
"""What `torch.no_grad` and the like call, as they begin and as they end."""


class GradientMode(TorchFunctionMode):
    """Within it, what is computed without gradients is cut off from them, and `used` has the tensors that are used.

    `named` are the tensors that are asked about, by their names. A `torch.autograd.Function` that has a gradient of its
    own is refused with a NotImplementedError, as jax would not ask it for that.
    """

    def __init__(self, named: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._names = {id(tensor): name for name, tensor in named.items()}
        self._expected = torch.is_grad_enabled()
        self.used: set[str] = set()

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func.__name__ == _SETTING:
            self._expected = bool(args[0])
            return func(*args)
        enabled = torch.is_grad_enabled()
        if self._expected and not enabled:
            raise NotImplementedError(
                "a torch.autograd.Function has a gradient of its own, which jax does not ask for: "
                "write its forward as a plain function, whose gradient is found"
            )
        self.used.update(self._names[id(leaf)] for leaf in tree_leaves((args, kwargs)) if id(leaf) in self._names)
        result = func(*args, **(kwargs or {}))
        if enabled and func is not torch.detach:
            return result
        if _is_in_place(func):
            args[0].copy_(_constant(args[0]))
            return result
        return tree_map_only(torch.Tensor, _constant, result)


def _is_in_place(func: Callable[..., Any]) -> bool:
    """Whether a function changes its first argument, as the names of those in torch tell."""
    name = func.__name__
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def _constant(tensor: Any) -> torch.Tensor:
    """`tensor`, cut off from what it was computed of; a view, which torchax does not cut off, as what it shows."""
    return (tensor.torch() if isinstance(tensor, View) else tensor).detach()
