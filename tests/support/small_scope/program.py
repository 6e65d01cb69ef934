"""Builder of a case: constrained arguments, operations, and constrained results."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from sdy.mesh import Mesh
from small_scope.choices import Choices
from small_scope.shardings import Split, splits

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

_DTYPES = {
    "i32": np.int32,
    "i8": np.int8,
    "ui8": np.uint8,
    "i1": np.bool_,
    "ui64": np.uint64,
    "f32": np.float32,
    "complex<f32>": np.complex64,
}
_APART = 64
"""More than the elements of any argument, so that a number identifies its argument and its index."""


@dataclass(frozen=True)
class Value:
    """A tensor by its name."""

    name: str
    shape: Shape
    element: str = "i32"

    @property
    def type(self) -> str:
        """The tensor type as text."""
        return type_text(self.shape, self.element)


def type_text(shape: Shape, element: str = "i32") -> str:
    """Return a tensor type as text."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@dataclass
class Program:
    """Builder of a function for a mesh, driven by choices."""

    choices: Choices
    mesh: Mesh
    manual: tuple[str, ...] = ()
    """Axes that shard no value, because the function is the body of a manual computation over them."""
    prefix: str = ""
    """Prefix of the names of all values."""
    _arguments: list[Value] = field(default_factory=list[Value])
    _inputs: list[list[Array]] = field(default_factory=list[list[Array]])
    """For each argument, the arrays to run the program with."""
    _body: list[str] = field(default_factory=list[str])
    _results: list[Value] = field(default_factory=list[Value])
    _functions: list[str] = field(default_factory=list[str])

    def size(self, least: int = 0, most: int = 7) -> int:
        """Choose the size of a dimension."""
        return self.choices.of(range(least, most + 1))

    def argument(self, shape: Shape, element: str = "i32") -> Value:
        """Add an argument in a chosen sharding, perhaps negated bitwise so that its padding is not zeros."""
        value = self.whole(shape, element)
        split = self.split(len(shape))
        if split is None:
            return value
        value = self._constrained(value, split)
        if element == "i32" and self.choices.of((True, False)):
            return self.op(f"stablehlo.not {value.name}", shape)
        return value

    def whole(self, shape: Shape, element: str = "i32", numbers: Array | None = None) -> Value:
        """Add a replicated argument with elements `numbers`, by default distinct from those of other arguments."""
        if numbers is None:
            start = 1 + _APART * len(self._arguments)
            numbers = np.arange(start, start + math.prod(shape)).reshape(shape)
        return self._add_argument(shape, element, [numbers])

    def index(self, *numbers: int) -> Value:
        """Add a scalar argument, to run with each of these numbers."""
        return self._add_argument((), "i32", [np.asarray(number) for number in numbers])

    def op(self, text: str, shape: Shape, element: str = "i32", operands: tuple[Value, ...] | None = None) -> Value:
        """Append an operation with one result. The types of `operands` are written if given, else only the result's."""
        result = Value(self._name(), shape, element)
        types = result.type if operands is None else f"{_types(operands)} -> {result.type}"
        self._body.append(f"{result.name} = {text} : {types}")
        return result

    def ops(
        self, text: str, results: Sequence[Shape], operands: Sequence[Value], elements: Sequence[str] = ()
    ) -> list[Value]:
        """Append an operation with several results, of i32 by default."""
        name = self._name()
        values = [
            Value(f"{name}#{index}", shape, element)
            for index, (shape, element) in enumerate(zip(results, elements or ["i32"] * len(results), strict=True))
        ]
        self._body.append(f"{name}:{len(results)} = {text} : {_types(operands)} -> {_types(values)}")
        return values

    def _name(self) -> str:
        return f"%{self.prefix}{len(self._body)}"

    def line(self, text: str) -> None:
        """Append operations as text."""
        self._body.append(text)

    def constant(self, number: int, element: str = "i32") -> Value:
        """Append a scalar constant."""
        return self.op(f"stablehlo.constant dense<{number}>", (), element)

    def function(self, text: str) -> None:
        """Add another function to the module."""
        self._functions.append(text)

    def result(self, *values: Value) -> "Program":
        """Return `values` from the function, in chosen shardings."""
        for value in values:
            split = self.split(len(value.shape))
            self._results.append(value if split is None else self._constrained(value, split))
        return self

    def result_as_it_is(self, value: Value) -> "Program":
        """Return `value` from the function, without a constraint."""
        self._results.append(value)
        return self

    def constrained(self, value: Value) -> Value:
        """Constrain `value` to a chosen sharding, or leave it."""
        split = self.split(len(value.shape))
        return value if split is None else self._constrained(value, split)

    def closed(self, value: Value) -> Value:
        """Constrain `value` to a chosen sharding with closed dimensions."""
        return self._constrained(value, self.choices.of(self.splits(len(value.shape))), ("",))

    def splits(self, rank: int) -> tuple[Split, ...]:
        """Return every split of a tensor of this rank over the free axes."""
        return splits(self.free, rank)

    @property
    def free(self) -> Mesh:
        """The mesh of the axes that are not manual."""
        return Mesh.of({name: size for name, size in self.mesh.axes if name not in self.manual})

    def given(self, arrays: list[Array], shape: Shape, element: str = "i32") -> Value:
        """Add a replicated argument, to run with each of these arrays."""
        return self._add_argument(shape, element, arrays)

    @property
    def arguments(self) -> list[tuple[Value, list[Array]]]:
        """The arguments, and the arrays to run the program with."""
        return list(zip(self._arguments, self._inputs, strict=True))

    @property
    def body(self) -> str:
        """The operations as text."""
        return "\n  ".join(self._body)

    def take_results(self) -> list[Value]:
        """Return the results, and remove them from the program."""
        results, self._results = self._results, []
        return results

    def inside(self, axes: Sequence[str]) -> "Program":
        """Return a builder of a body that is manual over these axes too, and adds functions to the same module."""
        manual, prefix = (*self.manual, *axes), f"{self.prefix}m{len(self._body)}_"
        return Program(self.choices, self.mesh, manual, prefix, _functions=self._functions)

    @property
    def text(self) -> str:
        """The module as text."""
        axes = ", ".join(f'"{name}"={size}' for name, size in self.mesh.axes)
        arguments = ", ".join(f"{value.name}: {value.type}" for value in self._arguments)
        results = ", ".join(value.type for value in self._results)
        returned = ", ".join(value.name for value in self._results)
        body = "\n  ".join([*self._body, f"return {returned} : {results}"])
        main = f"func.func @main({arguments}) -> ({results}) {{\n  {body}\n}}"
        return "\n".join([f"sdy.mesh @mesh = <[{axes}]>", main, *self._functions])

    def inputs(self, most: int = 6) -> list[tuple[Array, ...]]:
        """Return at most `most` combinations of arguments, evenly sampled."""
        every = list(product(*self._inputs))
        return every[:: -(-len(every) // most)]

    def _add_argument(self, shape: Shape, element: str, numbers: list[Array]) -> Value:
        value = Value(f"%{self.prefix}arg{len(self._arguments)}", shape, element)
        self._arguments.append(value)
        self._inputs.append([each.astype(_DTYPES[element]) for each in numbers])
        return value

    def split(self, rank: int) -> Split | None:
        """Choose a split of a tensor of this rank, or None for no constraint."""
        return self.choices.of((None, *self.splits(rank)[1:])) if rank else None

    def _constrained(self, value: Value, split: Split, ends: Sequence[str] = ("", "?")) -> Value:
        is_open = self.choices.of(ends)
        dims = ", ".join("{" + ", ".join([*map(str, axes), *([is_open] if is_open else [])]) + "}" for axes in split)
        return self.op(f"sdy.sharding_constraint {value.name} <@mesh, [{dims}]>", value.shape, value.element)


def _types(values: Sequence[Value]) -> str:
    return f"({', '.join(value.type for value in values)})"
