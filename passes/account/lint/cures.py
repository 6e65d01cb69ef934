"""Edits of a program before propagation: the fixes that lint suggests, as values that can be tried.

An edit names its target as a person would: an argument by its path, any operation by its source line. It changes all
operations of that line, since a loop of Python traces a line several times.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef
from sdy.diagnostics import Location, location_of
from sdy.dialect.attributes import ManualAxesAttr, TensorShardingAttr, TensorShardingPerValueAttr
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ManualComputationOp, ShardingConstraintOp
from sdy.dialect.shardings import (
    func_arg_sharding,
    func_result_sharding,
    set_func_arg_sharding,
    set_func_result_sharding,
)
from sdy.ir.editing import erase, insert, insert_for_other_uses, replace
from sdy.ir.shapes import rank
from sdy.ir.walking import operations, operations_of
from sdy.passes.account.lint.wording import joined, spec
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import element_bytes
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.elementwise import ConvertOp

Dims = tuple[tuple[AxisRef, ...], ...]
"""The axes of each dimension."""


class Edit(ABC):
    """An edit of a module that has not been propagated."""

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
        new = _sharding(module, main.function_type.inputs.data[self.index], self.dims, before)
        set_func_arg_sharding(main, self.index, new)
        result = next_value(main, self.index)
        if result is not None and before and dims_of_result(main, result) == before.dim_axes:
            set_func_result_sharding(main, result, new)
        return True

    @property
    def text(self) -> str:
        return f"shard {self.name} as {spec(self.dims)}" if self.dims is not None else f"leave {self.name} open"


def next_value(main: FuncOp, index: int) -> int | None:
    """Return the result that is the next value of an argument: of its state, or the only one of its type."""
    if index in (state := find_state(main)):
        return state[index]
    inputs, results = main.function_type.inputs.data, main.function_type.outputs.data
    alike = [number for number, type_ in enumerate(results) if type_ == inputs[index]]
    return alike[0] if len(alike) == 1 else None


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
        new = _sharding(module, main.function_type.outputs.data[self.index], self.dims, before)
        set_func_result_sharding(main, self.index, new)
        return True

    @property
    def text(self) -> str:
        how = "leave out" if self.dims is None else f"give result {self.index}, in"
        return f"{how} out_shardings" + ("" if self.dims is None else f", {spec(self.dims)}")


@dataclass(frozen=True)
class Constraint:
    """The sharding constraints of a source line to one sharding."""

    where: Location
    dims: Dims

    @classmethod
    def of(cls, op: Operation, dims: Dims) -> "Constraint | None":
        """Return the line of a constraint, or None if it is unknown."""
        where = location_of(op)
        return cls(where, dims) if where else None

    def operations(self, module: ModuleOp) -> list[ShardingConstraintOp]:
        """Return the constraints in `module`."""
        return [
            op
            for op in operations_of(module, ShardingConstraintOp)
            if op.sharding.data.dim_axes == self.dims and location_of(op) == self.where
        ]


@dataclass(frozen=True)
class ChangeConstraint(Edit):
    """Change the sharding of the constraints of a line, or remove them.

    Attributes:
        constraint: The constraints.
        dims: The new axes of each dimension; None removes the constraint.
    """

    constraint: Constraint
    dims: Dims | None

    def apply(self, module: ModuleOp) -> bool:
        found = self.constraint.operations(module)
        for op in found:
            if self.dims is None:
                replace(op, [op.input])
            else:
                new = _sharding(module, op.result.type, self.dims, op.sharding.data)
                op.properties["sharding"] = TensorShardingAttr.of(new)
        return bool(found)

    @property
    def text(self) -> str:
        where = short(self.constraint.where)
        if self.dims is None:
            return f"remove jax.lax.with_sharding_constraint at {where}"
        return f"change jax.lax.with_sharding_constraint at {where} to {spec(self.dims)}"


@dataclass(frozen=True)
class Results:
    """The results of the operations of a source line that have a name and a type."""

    where: Location
    operation: str
    index: int
    type_: Attribute

    @classmethod
    def of(cls, value: SSAValue) -> "Results | None":
        """Return the line of the operation that computes `value`, or None if it is unknown or an argument."""
        op = value.owner
        where = location_of(op) if isinstance(op, Operation) else None
        if not isinstance(op, Operation) or where is None:
            return None
        return cls(where, op.name, op.results.index(value), value.type)

    def values(self, module: ModuleOp) -> list[SSAValue]:
        """Return the values in `module`."""
        return [
            op.results[self.index]
            for op in operations(module)
            if op.name == self.operation
            and self.index < len(op.results)
            and op.results[self.index].type == self.type_
            and location_of(op) == self.where
        ]


@dataclass(frozen=True)
class AddConstraint(Edit):
    """Constrain the results of the operations of a line.

    Attributes:
        results: The results.
        dims: The axes of each dimension.
    """

    results: Results
    dims: Dims

    def apply(self, module: ModuleOp) -> bool:
        values = self.results.values(module)
        for value in values:
            constraint = ShardingConstraintOp(value, _sharding(module, value.type, self.dims, None))
            assert isinstance(value.owner, Operation)
            insert_for_other_uses(value, constraint, InsertPoint.after(value.owner))
        return bool(values)

    @property
    def text(self) -> str:
        return (
            f"constrain the {self.results.type_} computed at {short(self.results.where)} with "
            f"jax.lax.with_sharding_constraint(..., {spec(self.dims)})"
        )


@dataclass(frozen=True)
class CastFirst(Edit):
    """Move sharding constraints to the narrow side of the casts of a line, or add them there.

    Attributes:
        where: The line.
        dims: The sharding that a tensor is gathered to.
        is_widening: True if the casts are to a wider type, so that the gathers go before them.
    """

    where: Location
    dims: Dims
    is_widening: bool

    def apply(self, module: ModuleOp) -> bool:
        casts = [op for op in operations_of(module, ConvertOp) if location_of(op) == self.where]
        for op in casts:
            is_widening = element_bytes(op.operands[0].type) < element_bytes(op.result.type)
            if is_widening != self.is_widening or rank(op.result.type) != len(self.dims):
                continue
            wide = [use.operation for use in op.result.uses] if is_widening else [op.operands[0].owner]
            for each in wide:
                if isinstance(each, ShardingConstraintOp) and each.sharding.data.dim_axes == self.dims:
                    self._remove(each)
            narrow = op.operands[0] if is_widening else op.result
            new = ShardingConstraintOp(narrow, _sharding(module, narrow.type, self.dims, None))
            if is_widening:
                new.location = op.location
                insert(new, InsertPoint.before(op))
                op.operands[0] = new.result
            else:
                insert_for_other_uses(narrow, new, InsertPoint.after(op))
        return bool(casts)

    def _remove(self, constraint: ShardingConstraintOp) -> None:
        if self.is_widening:
            replace(constraint, [constraint.input])
            return
        for use in [*constraint.result.uses]:
            if isinstance(use.operation, ConvertOp):
                use.operation.operands[use.index] = constraint.input
        if constraint.result.first_use is None:
            erase(constraint)

    @property
    def text(self) -> str:
        where = short(self.where)
        if self.is_widening:
            return (
                f"gather before the cast at {where}: constrain its operand with "
                f"jax.lax.with_sharding_constraint(..., {spec(self.dims)})"
            )
        return (
            f"cast before the gather: constrain the result of the cast at {where} with "
            f"jax.lax.with_sharding_constraint(..., {spec(self.dims)}), not its operand"
        )


@dataclass(frozen=True)
class ReturnParts(Edit):
    """Return the parts of gathered results from the `shard_map`s of a line, and name the axes in `out_specs`.

    Attributes:
        where: The line.
        axes: The axes of the gathers.
    """

    where: Location
    axes: tuple[str, ...]

    def apply(self, module: ModuleOp) -> bool:
        is_changed = False
        for op in operations_of(module, ManualComputationOp):
            if location_of(op) == self.where:
                shardings = [*op.out_shardings.data]
                end = op.body.block.last_op
                for index, value in enumerate(end.operands if end else ()):
                    if end is not None and isinstance(gather := value.owner, AllGatherOp):
                        dimension = gather.all_gather_dim.value.data
                        dims = [*shardings[index].dims]
                        axes = (*dims[dimension].axes, *map(AxisRef, self.axes))
                        dims[dimension] = DimSharding(axes)
                        shardings[index] = TensorSharding(shardings[index].mesh, tuple(dims))
                        end.operands[index] = gather.operands[0]
                        if gather.results[0].first_use is None:
                            erase(gather)
                        is_changed = True
                op.properties["out_shardings"] = TensorShardingPerValueAttr.of(tuple(shardings))
        return is_changed

    @property
    def text(self) -> str:
        axes, where = joined([AxisRef(axis) for axis in self.axes]), short(self.where)
        return f"leave out jax.lax.all_gather in the jax.shard_map at {where}, and name {axes} in out_specs"


@dataclass(frozen=True)
class FreeManualAxes(Edit):
    """Leave axes of the `shard_map`s of a line to propagation: its body does not use them.

    Attributes:
        where: The line.
        axes: The axes that the specs do not name.
        kept: The other manual axes.
    """

    where: Location
    axes: tuple[str, ...]
    kept: tuple[str, ...]

    def apply(self, module: ModuleOp) -> bool:
        found = [op for op in operations_of(module, ManualComputationOp) if location_of(op) == self.where]
        for op in found:
            op.properties["manual_axes"] = ManualAxesAttr(self.kept)
            for name in ("in_shardings", "out_shardings"):
                shardings = cast(TensorShardingPerValueAttr, op.properties[name]).data
                op.properties[name] = TensorShardingPerValueAttr.of(tuple(map(_opened, shardings)))
        return bool(found)

    @property
    def text(self) -> str:
        axes = ", ".join(f'"{axis}"' for axis in self.kept)
        return (
            f"give the jax.shard_map at {short(self.where)} axis_names={{{axes}}}, so that "
            f"{joined([AxisRef(axis) for axis in self.axes])} shards the tensors inside too, or name it in its specs"
        )


@dataclass(frozen=True)
class Cure:
    """A suggested fix: edits that belong together."""

    edits: tuple[Edit, ...]

    def apply(self, module: ModuleOp) -> bool:
        """Apply the edits in place, and return whether all have their targets."""
        return all(edit.apply(module) for edit in self.edits)

    @property
    def is_open(self) -> bool:
        """True if an edit leaves a layout to propagation, rather than naming it."""
        return any(getattr(edit, "dims", ()) is None for edit in self.edits)

    @property
    def text(self) -> str:
        """The edits as one instruction; arguments with one sharding are listed together."""
        alike: dict[Dims | None, list[str]] = {}
        for edit in self.edits:
            if isinstance(edit, ShardArgument):
                alike.setdefault(edit.dims, []).append(edit.name)
        arguments = [ShardArgument(0, several(names), dims).text for dims, names in alike.items()]
        others = [edit.text for edit in self.edits if not isinstance(edit, ShardArgument)]
        return ", and ".join(dict.fromkeys([*arguments, *others]))


_MOST_NAMES = 3


def several(names: Sequence[str]) -> str:
    """List names; of many, the first and the number of the others."""
    if len(names) <= _MOST_NAMES:
        return joined(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2:,} others"


def short(where: Location) -> str:
    """Format a location by the name of its file and its line."""
    return f"{where.filename.rpartition('/')[2]}:{where.line}"


def dims_of(sharding: TensorSharding | None, value: SSAValue) -> Dims:
    """Return the axes of each dimension of `value`."""
    return sharding.dim_axes if sharding else ((),) * rank(value.type)


def _opened(sharding: TensorSharding) -> TensorSharding:
    """Return a sharding of a manual computation in which the axes that it does not name are free."""
    return TensorSharding(sharding.mesh, tuple(DimSharding(dim.axes, is_closed=False) for dim in sharding.dims))


def _sharding(module: ModuleOp, type_: Attribute, dims: Dims | None, before: TensorSharding | None) -> TensorSharding:
    mesh = before.mesh if before else next(name for name, mesh in named_meshes(module).items() if mesh.axes)
    if dims is None:
        return TensorSharding.replicated_open(mesh, rank(type_))
    return TensorSharding(mesh, tuple(map(DimSharding, dims)))
