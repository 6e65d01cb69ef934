"""PyTorch models as functions of their tensors."""

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

from sdy.passes.torch.modes import GradientMode
from sdy.passes.torch.tensors import as_arrays, as_traced, environment
from sdy.type_helpers import Function

for library in (torch, torchax):
    register_exclusion(str(Path(library.__path__[0])) + os.sep)  # source locations of a program are lines of the model
register_exclusion(str(Path(__file__).parent) + os.sep)

_MODEL = "model."
"""Prefix of the names of a model's tensors inside a computation."""

Arrays = dict[str, Any]
"""Arrays by the names of the model's tensors."""


@dataclass(frozen=True)
class Result:
    """Result of a computation with a model.

    Attributes:
        value: The value returned.
        tensors: The model's tensors afterwards; the computation may change buffers.
        used: The names of the tensors used.
    """

    value: Any
    tensors: Arrays
    used: frozenset[str]


@dataclass(frozen=True)
class Model:
    """A module whose tensors are arguments.

    Raises:
        NotImplementedError: A module has state that cannot be traced as in torch.
    """

    module: torch.nn.Module

    def __post_init__(self) -> None:
        for name, module in self.module.named_modules():
            _check(name or type(module).__name__, module)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """All names of each parameter and buffer, by the first of them; modules may share tensors."""
        by_tensor: dict[int, list[str]] = {}
        for name, tensor in self._named():
            by_tensor.setdefault(id(tensor), []).append(name)
        return {names[0]: names for names in by_tensor.values()}

    @cached_property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Each parameter and buffer by its first name."""
        return {name: tensor for name, tensor in self._named() if name in self.names}

    def call(self, function: Function[Any], arrays: Mapping[str, Any], batch: Iterable[Any], key: Any) -> Result:
        """Call `function` with the module and `batch` under JAX tracing.

        Args:
            function: The function to call; its first argument is the module.
            arrays: Traced arrays that replace the module's tensors, by name.
            batch: The other arguments.
            key: JAX key of the random numbers.
        """
        tensors = as_traced({_MODEL + name: array for name, array in arrays.items()})
        mode = GradientMode(tensors)
        computation = _Computation(self.module, function)
        with environment(), environment().override_property(prng=key), torch.enable_grad(), mode:
            value = _checked_result(lambda: torch.func.functional_call(computation, tensors, as_traced(tuple(batch))))
        after = {name.removeprefix(_MODEL): array for name, array in as_arrays(tensors).items()}
        return Result(as_arrays(value), after, frozenset(name.removeprefix(_MODEL) for name in mode.used))

    def _named(self) -> Iterable[tuple[str, torch.Tensor]]:
        yield from self.module.named_parameters(remove_duplicate=False)
        yield from self.module.named_buffers(remove_duplicate=False)


class _Computation(torch.nn.Module):
    """A module that calls `function` with a model, which is its submodule."""

    def __init__(self, model: torch.nn.Module, function: Function[Any]) -> None:
        super().__init__()
        self.model = model
        self._function = (function,)  # in a tuple: it may be a module, and must not become a submodule

    def forward(self, *batch: Any) -> Any:
        (function,) = self._function
        return function(self.model, *batch)


def _checked_result(compute: Callable[[], Any]) -> Any:
    """Return the result of `compute`; raise TypeError with advice if torchax does not support it."""
    try:
        return compute()
    except jax.errors.ConcretizationTypeError as problem:
        raise TypeError(
            "the model's control flow depends on the values of tensors, which are unknown during compilation: "
            "use torch.where to select between tensors"
        ) from problem
    except AssertionError as problem:
        if "mixed math" not in str(problem):
            raise
        raise TypeError(
            "the computation uses a tensor that is neither a parameter or buffer of the model nor part of the batch: "
            "make it one of these, or create it where it is used, on the device of another tensor"
        ) from problem


def _check(name: str, module: torch.nn.Module) -> None:
    """Raise NotImplementedError for a module with state that cannot be traced as in torch."""
    for attribute, value in vars(module).items():
        if isinstance(value, torch.Tensor):
            raise NotImplementedError(
                f"{name}.{attribute} is a tensor that is neither a parameter nor a buffer: "
                f"register it with self.register_buffer({attribute!r}, ..., persistent=False)"
            )
    if module.training and getattr(module, "track_running_stats", False):
        raise NotImplementedError(
            f"{name} is a {type(module).__name__} in training mode, whose running statistics torchax does not compute: "
            "use torch.nn.GroupNorm, track_running_stats=False, or .eval() of this module"
        )
