"""A model of torch as a function of its tensors."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import torch
import torchax
from jax.extend.source_info_util import register_exclusion

from sdy.callables import Function
from sdy.passes.torch.environment import environment
from sdy.passes.torch.gradient_mode import GradientMode
from sdy.passes.torch.tensors import as_arrays, as_traced

for library in (torch, torchax):
    register_exclusion(str(Path(library.__path__[0])) + os.sep)  # a place of a program is a line of the model
register_exclusion(str(Path(__file__).parent) + os.sep)

_MODEL = "model."
"""What stands before the names of a model's tensors where it is a part of a computation."""

Arrays = dict[str, Any]
"""Arrays by the names of the model's tensors."""


@dataclass(frozen=True)
class Result:
    """What a model computed: `value`; its tensors after that, as it may change buffers; which of them it used."""

    value: Any
    tensors: Arrays
    used: frozenset[str]


@dataclass(frozen=True)
class Model:
    """A module whose tensors are arguments. Raises NotImplementedError for one whose state would not be torch's."""

    module: torch.nn.Module

    def __post_init__(self) -> None:
        for name, module in self.module.named_modules():
            _check(name or type(module).__name__, module)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """All names of each parameter and buffer, by the first of them: modules may share one."""
        by_tensor: dict[int, list[str]] = {}
        for name, tensor in self._named():
            by_tensor.setdefault(id(tensor), []).append(name)
        return {names[0]: names for names in by_tensor.values()}

    @cached_property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Each parameter and buffer by its first name."""
        return {name: tensor for name, tensor in self._named() if name in self.names}

    def call(self, function: Function[Any], arrays: Mapping[str, Any], batch: Iterable[Any], key: Any) -> Result:
        """What `function` computes with the module, whose tensors are `arrays`, as jax traces them, and `batch`.

        Random numbers come of `key`, one of jax.
        """
        tensors = as_traced({_MODEL + name: array for name, array in arrays.items()})
        mode = GradientMode(tensors)
        computation = _Computation(self.module, function)
        with environment(), environment().override_property(prng=key), torch.enable_grad(), mode:
            value = _computed(lambda: torch.func.functional_call(computation, tensors, as_traced(tuple(batch))))
        after = {name.removeprefix(_MODEL): array for name, array in as_arrays(tensors).items()}
        return Result(as_arrays(value), after, frozenset(name.removeprefix(_MODEL) for name in mode.used))

    def _named(self) -> Iterable[tuple[str, torch.Tensor]]:
        yield from self.module.named_parameters(remove_duplicate=False)
        yield from self.module.named_buffers(remove_duplicate=False)


class _Computation(torch.nn.Module):
    """What `function` computes with a model, as a module that has the model."""

    def __init__(self, model: torch.nn.Module, function: Function[Any]) -> None:
        super().__init__()
        self.model = model
        self._function = (function,)  # which may be a module, whose tensors are no arguments

    def forward(self, *batch: Any) -> Any:
        (function,) = self._function
        return function(self.model, *batch)


def _computed(compute: Callable[[], Any]) -> Any:
    """What `compute` returns. Raises TypeError, which says what to do, for what torchax cannot compute with."""
    try:
        return compute()
    except jax.errors.ConcretizationTypeError as problem:
        raise TypeError(
            "what the model does depends on the values of tensors, which a compiled program has not yet: "
            "torch.where chooses between tensors"
        ) from problem
    except AssertionError as problem:
        if "mixed math" not in str(problem):
            raise
        raise TypeError(
            "a tensor that is computed with is neither a parameter or buffer of the model nor of the batch: "
            "make it one of these, or make it where it is used, on the device of another"
        ) from problem


def _check(name: str, module: torch.nn.Module) -> None:
    """Raise NotImplementedError for a module whose state would not be what torch makes of it."""
    for attribute, value in vars(module).items():
        if isinstance(value, torch.Tensor):
            raise NotImplementedError(
                f"{name}.{attribute} is a tensor that is neither a parameter nor a buffer: "
                f"self.register_buffer({attribute!r}, ..., persistent=False) makes it one"
            )
    if module.training and getattr(module, "track_running_stats", False):
        raise NotImplementedError(
            f"{name} is a {type(module).__name__} in training, whose running statistics torchax does not compute: "
            "take torch.nn.GroupNorm, track_running_stats=False, or .eval() of this module"
        )
