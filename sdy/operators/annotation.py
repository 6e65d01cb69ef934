"""Parsed annotations of operators.

    m^ kd+, kd+ n -> m^ n        dimensions: an identifier and its reduction: none, `+` or `^`
    (h t) k, ? -> h t k          a dimension with several identifiers, major to minor; `?` is a non-tensor

In a dimension with several identifiers, a device's shard is contiguous only if the first identifier is sharded, so the
others cannot be sharded in any tensor. An identifier 1 does not count as the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import dropwhile

from sdy.rules.annotated_factors import AnnotationError

EXPANDS = "*"
"""The identifier of any number of dimensions."""


class Reduction(Enum):
    """The effect of sharding an identifier on the outputs that lack it; the value is the suffix in annotations."""

    SPATIAL = ""
    """All outputs have the identifier."""
    SUM = "+"
    """The outputs without the identifier are partial sums."""
    UNSHARDABLE = "^"
    """The identifier cannot be sharded."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier of a dimension. A decimal name is the size."""

    name: str
    reduction: Reduction

    @property
    def is_number(self) -> bool:
        """True if the identifier is a size."""
        return self.name.isdecimal()

    def __str__(self) -> str:
        return self.name + self.reduction.value


Dim = tuple[Identifier, ...]
"""The identifiers of a dimension, major to minor."""

Tensor = tuple[Dim, ...]
"""The dimensions of a tensor."""

ONE_ELEMENT: Tensor = ((Identifier("1", Reduction.UNSHARDABLE),),)
"""A tensor of one element, written `1`; it also matches a scalar."""


@dataclass(frozen=True)
class OperatorAnnotation:
    """The inputs and outputs of an operator, None for non-tensors.

    `str()` also marks identifiers with `^` that cannot be sharded because of their positions.

    Raises:
        AnnotationError: An identifier has two different suffixes.
    """

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]

    def __post_init__(self) -> None:
        seen: dict[str, Identifier] = {}
        for identifier in self.identifiers:
            first = seen.setdefault(identifier.name, identifier)
            if first != identifier:
                raise AnnotationError(
                    f"identifier '{identifier.name}' is written both `{first}` and `{identifier}`: use one form"
                )

    @property
    def tensor_inputs(self) -> tuple[Tensor, ...]:
        """The inputs that are tensors."""
        return tuple(tensor for tensor in self.inputs if tensor is not None)

    @property
    def tensor_outputs(self) -> tuple[Tensor, ...]:
        """The outputs that are tensors."""
        return tuple(tensor for tensor in self.outputs if tensor is not None)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs, then the outputs, that are tensors."""
        return (*self.tensor_inputs, *self.tensor_outputs)

    @property
    def identifiers(self) -> Iterator[Identifier]:
        """All occurrences of identifiers."""
        return (identifier for tensor in self.tensors for dim in tensor for identifier in dim)

    @property
    def unknown_outputs(self) -> list[str]:
        """The names of output identifiers that no input has."""
        known = _names(self.tensor_inputs)
        return [name for name in _names(self.tensor_outputs) if name not in known and not name.isdecimal()]

    def reduction(self, name: str) -> Reduction:
        """Return the reduction of the identifier `name`, with regard to all of its positions."""
        return Reduction.UNSHARDABLE if name in self._unshardable else self._written[name]

    def unshardable_reason(self, name: str) -> str | None:
        """Return why the identifier `name` cannot be sharded; None if it can.

        Besides identifiers with `^`, these are identifiers whose sharding would make an output wrong: an output that
        lacks the identifier but is not summed would differ between devices.
        """
        if name in self._unshardable or self._written[name] is Reduction.SUM:
            return self._unshardable.get(name)
        if name in self.unknown_outputs:
            return f"no input has `{name}`, so a device cannot know its shard"
        for index, tensor in enumerate(self.outputs):
            if tensor is not None and name not in _names((tensor,)):
                return f"output {index} lacks `{name}`: write `{name}+` if its partial results are to be summed"
        return None

    def expanded(self, rank: int) -> "OperatorAnnotation":
        """Return the annotation with `*` replaced by `rank` new identifiers."""
        used = {identifier.name for identifier in self.identifiers}
        new = [name for name in _letters(rank + len(used)) if name not in used][:rank]

        def expand(tensor: Tensor) -> Tensor:
            dims: list[Dim] = []
            for dim in tensor:
                dims += [(replace(dim[0], name=name),) for name in new] if dim[0].name == EXPANDS else [dim]
            return tuple(dims)

        return self.mapped(expand)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> "OperatorAnnotation":
        """Return the annotation with `change` applied to each tensor."""

        def all_of(values: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
            return tuple(None if value is None else change(value) for value in values)

        return OperatorAnnotation(all_of(self.inputs), all_of(self.outputs))

    def __str__(self) -> str:
        def shown(tensor: Tensor | None) -> str:
            if tensor is None:
                return "?"
            dims = [" ".join(f"{i.name}{self.reduction(i.name).value}" for i in dim) for dim in tensor]
            return " ".join(f"({text})" if len(dim) > 1 else text for dim, text in zip(tensor, dims, strict=True))

        return f"{', '.join(map(shown, self.inputs))} -> {', '.join(map(shown, self.outputs))}".strip()

    @cached_property
    def _written(self) -> dict[str, Reduction]:
        return {identifier.name: identifier.reduction for identifier in self.identifiers}

    @cached_property
    def _unshardable(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        for tensor in self.tensors:
            names = [identifier.name for dim in tensor for identifier in dim]
            reasons |= {name: f"`{name}` occurs twice in one tensor" for name in names if names.count(name) > 1}
            for dim in tensor:
                shown = " ".join(map(str, dim))
                for identifier in list(dropwhile(lambda i: i.name == "1", dim))[1:]:
                    reasons[identifier.name] = f"`{identifier.name}` is not the first of `({shown})`"
        for name, reduction in self._written.items():
            if name.isdecimal():
                reasons[name] = f"`{name}` is a number, and numbers are not split"
            elif reduction is Reduction.UNSHARDABLE:
                reasons[name] = f"it is written `{name}^`"
        return reasons


def _names(tensors: tuple[Tensor, ...]) -> dict[str, None]:
    """Return the names of the identifiers of `tensors`, in order."""
    return {identifier.name: None for tensor in tensors for dim in tensor for identifier in dim}


def _letters(count: int) -> Iterator[str]:
    """Yield `count` names: `a`, `b`, ..., `z`, `a1`, `b1` and so on."""
    return (chr(ord("a") + index % 26) + (str(index // 26) if index >= 26 else "") for index in range(count))
