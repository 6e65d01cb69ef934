"""What the annotation of an operator says, as values.

    m^ kd+, kd+ n -> m^ n        dimensions: an identifier and how it may be split, nothing, `+` or `^`
    (h t) k, ? -> h t k          a dimension made of several, major to minor; `?` is no tensor

Where a dimension is made of several identifiers, a device's part of it is without gaps only if the first is split, so
the others can't be, wherever they stand. A 1 doesn't count as the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import dropwhile

from sdy.rules.annotated_factors import AnnotationError

EXPANDS = "*"
"""The identifier that stands for any number of dimensions."""


class Reduction(Enum):
    """What splitting an identifier makes of the outputs that lack it; the value is how that is written."""

    SPATIAL = ""
    """There are none: those that have it are split."""
    SUM = "+"
    """They are partial: the parts are to be summed."""
    WHOLE = "^"
    """Nothing, as the identifier can't be split."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A part of a dimension. A name that is a number is its size."""

    name: str
    reduction: Reduction

    @property
    def is_number(self) -> bool:
        """Whether this is a size that was written as such."""
        return self.name.isdecimal()

    def __str__(self) -> str:
        return self.name + self.reduction.value


Dim = tuple[Identifier, ...]
"""The identifiers that a dimension is made of, major to minor."""

Tensor = tuple[Dim, ...]
"""The dimensions of a tensor."""

ONE_ELEMENT: Tensor = ((Identifier("1", Reduction.WHOLE),),)
"""A tensor of one element. Written `1`, it may also be a scalar, which has no dimension."""


@dataclass(frozen=True)
class OperatorAnnotation:
    """The inputs and outputs of an operator, None for what is no tensor.

    As text, identifiers that can't be split because of where they stand have a `^` too.

    Raises:
        AnnotationError: an identifier is written in two ways.
    """

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]

    def __post_init__(self) -> None:
        seen: dict[str, Identifier] = {}
        for identifier in self.identifiers:
            first = seen.setdefault(identifier.name, identifier)
            if first != identifier:
                raise AnnotationError(
                    f"identifier '{identifier.name}' is both `{first}` and `{identifier}`: write it alike everywhere"
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
        """The inputs and then the outputs that are tensors."""
        return (*self.tensor_inputs, *self.tensor_outputs)

    @property
    def identifiers(self) -> Iterator[Identifier]:
        """All identifiers, as often as they are written."""
        return (identifier for tensor in self.tensors for dim in tensor for identifier in dim)

    @property
    def unknown_outputs(self) -> list[str]:
        """The identifiers of outputs that no input has."""
        known = _names(self.tensor_inputs)
        return [name for name in _names(self.tensor_outputs) if name not in known and not name.isdecimal()]

    def reduction(self, name: str) -> Reduction:
        """How the identifier `name` may be split, having regard to all of the places where it stands."""
        return Reduction.WHOLE if name in self._why_whole else self._written[name]

    def why_not_split(self, name: str) -> str | None:
        """Why the identifier `name` can't be split, None if it can.

        Besides those that have a `^`, these are the ones that would make an output wrong: of what is not summed, each
        device would take its part for the whole.
        """
        if name in self._why_whole or self._written[name] is Reduction.SUM:
            return self._why_whole.get(name)
        if name in self.unknown_outputs:
            return f"no input has `{name}`, so that a device could not know its part"
        for index, tensor in enumerate(self.outputs):
            if tensor is not None and name not in _names((tensor,)):
                return f"output {index} lacks `{name}`: write `{name}+` if its parts are to be summed"
        return None

    def expanded(self, rank: int) -> "OperatorAnnotation":
        """The annotation with `*` replaced by `rank` identifiers that are not in it yet."""
        taken = {identifier.name for identifier in self.identifiers}
        new = [name for name in _letters(rank + len(taken)) if name not in taken][:rank]

        def expand(tensor: Tensor) -> Tensor:
            dims: list[Dim] = []
            for dim in tensor:
                dims += [(replace(dim[0], name=name),) for name in new] if dim[0].name == EXPANDS else [dim]
            return tuple(dims)

        return self.mapped(expand)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> "OperatorAnnotation":
        """The annotation with each tensor changed."""

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
    def _why_whole(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        for tensor in self.tensors:
            names = [identifier.name for dim in tensor for identifier in dim]
            reasons |= {name: f"`{name}` is twice in one tensor" for name in names if names.count(name) > 1}
            for dim in tensor:
                shown = " ".join(map(str, dim))
                for identifier in list(dropwhile(lambda i: i.name == "1", dim))[1:]:
                    reasons[identifier.name] = f"`{identifier.name}` is not the first of `({shown})`"
        for name, reduction in self._written.items():
            if name.isdecimal():
                reasons[name] = f"`{name}` is a number, and numbers are not split"
            elif reduction is Reduction.WHOLE:
                reasons[name] = f"it is written `{name}^`"
        return reasons


def _names(tensors: tuple[Tensor, ...]) -> dict[str, None]:
    """The names of the identifiers of `tensors`, in order."""
    return {identifier.name: None for tensor in tensors for dim in tensor for identifier in dim}


def _letters(count: int) -> Iterator[str]:
    """`a`, `b`, ..., `z`, `a1`, `b1` and so on."""
    return (chr(ord("a") + index % 26) + (str(index // 26) if index >= 26 else "") for index in range(count))
