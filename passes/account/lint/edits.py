"""Edits of the arguments and results of a program before propagation, and fixes that consist of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import (
    func_arg_sharding,
    func_result_sharding,
    get_sharding,
    set_func_arg_sharding,
    set_func_result_sharding,
)
from sdy.ir.shapes import rank
from sdy.passes.account.lint.wording import spec
from sdy.passes.account.name_lists import several
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.sharding import DimSharding, TensorSharding

Dims = tuple[tuple[AxisRef, ...], ...]
"""The axes of each dimension."""


class Edit(ABC):
    """An edit of a module that has not been propagated."""

    adds_constraint: ClassVar[bool] = False
    """True if the program has no line yet for what it adds."""

    @abstractmethod
    def apply(self, module: ModuleOp) -> bool:
        """Edit `module` in place, and return whether it has the target."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The edit as an instruction."""


@dataclass(frozen=True)
class ShardArgument(Edit):
    """Give an argument of the main function a sharding, and its next value if that has the argument's sharding.

    Attributes:
        index: The index of the argument.
        name: The argument in messages.
        dims: The axes of each dimension; None leaves them to propagation.
    """

    index: int
    name: str
    dims: Dims | None

    def apply(self, module: ModuleOp) -> bool:
        main = main_function(module)
        before = func_arg_sharding(main, self.index)
        new = sharding_with(module, main.function_type.inputs.data[self.index], self.dims, before)
        set_func_arg_sharding(main, self.index, new)
        result = next_values(main).get(self.index)
        if result is not None and before and dims_of_result(main, result) == before.dim_axes:
            set_func_result_sharding(main, result, new)
        return True

    @property
    def text(self) -> str:
        return f"shard {self.name} as {spec(self.dims)}" if self.dims is not None else f"leave {self.name} open"


def next_values(main: FuncOp) -> Mapping[int, int]:
    """Return for arguments the result that is the next value: of the state, or the only one of their type."""
    inputs, results = main.function_type.inputs.data, main.function_type.outputs.data
    by_type: dict[Attribute, list[int]] = {}
    for number, type_ in enumerate(results):
        by_type.setdefault(type_, []).append(number)
    alike = {index: by_type.get(type_, []) for index, type_ in enumerate(inputs)}
    return {index: numbers[0] for index, numbers in alike.items() if len(numbers) == 1} | dict(find_state(main))


def dims_of_result(main: FuncOp, index: int) -> Dims | None:
    """Return the axes of each dimension of a result that has a declared sharding."""
    sharding = func_result_sharding(main, index)
    return sharding.dim_axes if sharding else None


@dataclass(frozen=True)
class ShardResult(Edit):
    """Give a result of the main function a sharding.

    Attributes:
        index: The index of the result.
        dims: The axes of each dimension; None leaves them to propagation.
    """

    index: int
    dims: Dims | None

    def apply(self, module: ModuleOp) -> bool:
        main = main_function(module)
        before = func_result_sharding(main, self.index)
        new = sharding_with(module, main.function_type.outputs.data[self.index], self.dims, before)
        set_func_result_sharding(main, self.index, new)
        return True

    @property
    def text(self) -> str:
        return _results_text([f"result {self.index}"], self.dims)


def _results_text(names: Sequence[str], dims: Dims | None) -> str:
    return "leave out out_shardings" if dims is None else f"give {several(names)}, in out_shardings, {spec(dims)}"


def dims_of(sharding: TensorSharding | None, value: SSAValue) -> Dims:
    """Return the axes of each dimension of `value`; none if it is on a single device."""
    return sharding.dim_axes if sharding and sharding.dims else ((),) * rank(value.type)


def value_dims(value: SSAValue) -> Dims:
    """Return the axes of each dimension of `value` with its own sharding."""
    return dims_of(get_sharding(value), value)


def sharding_with(
    module: ModuleOp, type_: Attribute, dims: Dims | None, before: TensorSharding | None
) -> TensorSharding:
    """Return the sharding of a tensor with `dims` on the mesh of `before`; open if `dims` is None."""
    mesh = before.mesh if before else next(name for name, mesh in named_meshes(module).items() if mesh.axes)
    if dims is None:
        return TensorSharding.replicated_open(mesh, rank(type_))
    return TensorSharding(mesh, tuple(map(DimSharding, dims)))


class LazyCures(Sequence["Cure"]):
    """Fixes that are listed when they are first read: most matches of a large program are too small for a fix."""

    def __init__(self, cures: Callable[[], Sequence["Cure"]]) -> None:
        self._list = cures

    @cached_property
    def _cures(self) -> Sequence["Cure"]:
        return self._list()

    def __len__(self) -> int:
        return len(self._cures)

    @overload
    def __getitem__(self, index: int) -> "Cure": ...
    @overload
    def __getitem__(self, index: slice) -> Sequence["Cure"]: ...
    def __getitem__(self, index: int | slice) -> "Cure | Sequence[Cure]":
        return self._cures[index]


@dataclass(frozen=True)
class Cure:
    """A suggested fix: edits that belong together."""

    edits: tuple[Edit, ...]

    def apply(self, module: ModuleOp) -> bool:
        """Apply the edits in place, and return whether all have their targets."""
        return all(edit.apply(module) for edit in self.edits)

    def then(self, later: "Cure") -> "Cure":
        """Return the edits of this fix and of a later one, which shards arguments of both again."""
        kept = (each for each in self.edits if not (isinstance(each, ShardArgument) and each.index in later.arguments))
        return Cure(tuple(dict.fromkeys((*kept, *later.edits))))

    @property
    def arguments(self) -> frozenset[int]:
        """The indices of the arguments that the edits shard."""
        return frozenset(edit.index for edit in self.edits if isinstance(edit, ShardArgument))

    @property
    def is_open(self) -> bool:
        """True if an edit leaves the layout of an argument to propagation, rather than naming it."""
        return any(isinstance(edit, ShardArgument) and edit.dims is None for edit in self.edits)

    @property
    def adds_constraint(self) -> bool:
        """True if an edit adds a constraint to the program."""
        return any(edit.adds_constraint for edit in self.edits)

    @property
    def text(self) -> str:
        """The edits as one instruction; arguments with one sharding are listed together."""
        alike: dict[Dims | None, list[str]] = {}
        results: dict[Dims | None, list[str]] = {}
        for edit in self.edits:
            if isinstance(edit, ShardArgument):
                alike.setdefault(edit.dims, []).append(edit.name)
            elif isinstance(edit, ShardResult):
                results.setdefault(edit.dims, []).append(f"result {edit.index}")
        arguments = [ShardArgument(0, several(names), dims).text for dims, names in alike.items()]
        returned = [_results_text(names, dims) for dims, names in results.items()]
        others = [edit.text for edit in self.edits if not isinstance(edit, ShardArgument | ShardResult)]
        return ", and ".join(dict.fromkeys([*arguments, *returned, *others]))
