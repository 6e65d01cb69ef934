"""Scalars of optimizers as traced values.

These are scalars read from tensors, as the step count, or from parameter groups, as the learning rate. A compiled
program computes them as tensors, so that they may change from step to step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


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
