"""Numbers that an optimizer takes from tensors, as the count of its steps, or from its groups, as the learning rate.

In a compiled program they are computed as tensors are, so that they may change from step to step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class ScalarsMode(TorchFunctionMode):
    """Within it, `tensor.item()` is the tensor, and tensors may stand where torch asks for a number beside others.

    Such are `alpha=`, as of `add_(other, alpha=)`, and `value=`, as of `addcdiv_(tensor1, tensor2, value=)`: factors of
    the first tensor behind the one that the function is called on.
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
        if (out := named.pop("out", None)) is not None:  # which torchax does not take
            return out.copy_(func(*args, **named))
        return func(*args, **named)
