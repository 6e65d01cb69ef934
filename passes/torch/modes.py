"""torch function modes: torch's control of gradients, and scalars of optimizers as traced values.

torch records on each tensor how to differentiate it; JAX differentiates the program. A value computed under
`torch.no_grad()` is a constant for differentiation. A parameter that the loss does not use has no gradient in torch,
and its optimizer does not update it, whereas JAX computes a gradient of zeros.

Scalars of optimizers are read from tensors, as the step count, or from parameter groups, as the learning rate. A
compiled program computes them as tensors, so that they may change from step to step.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torchax.view import View

_SETTING = "_set_grad_enabled"
"""Function that `torch.no_grad` and similar context managers call on entry and exit."""


class GradientMode(TorchFunctionMode):
    """Mode that stops gradients of values computed without gradients, and records in `used` which tensors are used.

    A `torch.autograd.Function` with a custom gradient raises NotImplementedError, since JAX would not call it.

    Args:
        named: The tensors to record, by name.
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
                "a torch.autograd.Function has a custom gradient, which JAX does not call: "
                "write its forward as a plain function, which JAX differentiates"
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
    """Return whether a function modifies its first argument, by torch's naming convention."""
    name = func.__name__
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def _constant(tensor: Any) -> torch.Tensor:
    """Detach `tensor` from its gradient; a view, which torchax cannot detach, is materialized first."""
    return (tensor.torch() if isinstance(tensor, View) else tensor).detach()


class ScalarsMode(TorchFunctionMode):
    """Mode in which `tensor.item()` returns the tensor, and tensors may replace numbers as scalar arguments.

    Scalar arguments are `alpha=`, as in `add_(other, alpha=)`, and `value=`, as in `addcdiv_(tensor1, tensor2,
    value=)`: factors of the first tensor argument.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.Tensor.item:
            return args[0]
        named = dict(kwargs or {})
        for name in ("alpha", "value"):
            if isinstance(named.get(name), torch.Tensor):
                target, first, *others = args
                args = target, first * named.pop(name), *others
        if (out := named.pop("out", None)) is not None:  # torchax does not support `out`
            return out.copy_(func(*args, **named))
        return func(*args, **named)
