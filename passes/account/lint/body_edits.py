"""Edits of constraints, casts and manual computations of a program before propagation.

An edit names its target by the source line. It changes all operations of that line, since a loop of Python traces a
line several times.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef
from sdy.diagnostics import Location, location_of
from sdy.dialect.attributes import ManualAxesAttr, TensorShardingAttr, TensorShardingPerValueAttr
from sdy.dialect.ops import ManualComputationOp, ShardingConstraintOp
from sdy.ir.editing import change_type, erase, insert, insert_for_other_uses, replace
from sdy.ir.shapes import rank, shape_of, tensor_of
from sdy.ir.walking import operations, operations_of
from sdy.passes.account.lint.edits import Dims, Edit, sharding_with
from sdy.passes.account.lint.explicit_types import primitive, retyped, written_as
from sdy.passes.account.lint.gathered_results import gathered_results
from sdy.passes.account.lint.places import python_line
from sdy.passes.account.lint.wording import spec
from sdy.passes.account.name_lists import joined
from sdy.passes.common.loops import carried_unchanged
from sdy.passes.common.properties import element_bytes
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass, name_path
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectivePermuteOp
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp
from sdy.stablehlo.elementwise import ConvertOp
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp


@dataclass(frozen=True)
class Constraint:
    """The sharding constraints of a Python line, or those of tensors of one type, to one sharding.

    They are of one primitive of JAX, if that is known: with explicit axis types, results have constraints too.
    """

    where: Location | None
    dims: Dims
    type_: Attribute
    primitive: str = ""

    @classmethod
    def of(cls, op: Operation, dims: Dims) -> "Constraint":
        """Return the line and the sharding of a constraint."""
        return cls(location_of(op), dims, op.operands[0].type, primitive(op))

    def operations(self, module: ModuleOp) -> list[ShardingConstraintOp]:
        """Return the constraints in `module`."""
        return [
            op
            for op in operations_of(module, ShardingConstraintOp)
            if op.sharding.data.dim_axes == self.dims and _is_alike(op, op.input.type, self.where, self.type_)
            if primitive(op) == self.primitive
        ]

    @property
    def text(self) -> str:
        """The function or argument of JAX that a person writes, and the line."""
        return f"{written_as(self.primitive)} {_place(self.where, self.type_)}"


@dataclass(frozen=True)
class ChangeConstraint(Edit):
    """Change the sharding of the constraints of a line, or remove them; constraints that pass it on follow.

    Attributes:
        constraint: The constraints.
        dims: The new axes of each dimension; None removes the constraint.
    """

    constraint: Constraint
    dims: Dims | None

    def apply(self, module: ModuleOp) -> bool:
        found = self.constraint.operations(module)
        following = retyped(module, dict.fromkeys(found, self.dims))
        for op, dims in {**following, **dict.fromkeys(found, self.dims)}.items():
            if dims is None:
                replace(op, [op.operands[0]])
            elif isinstance(op, ShardingConstraintOp):
                new = sharding_with(module, op.result.type, dims, op.sharding.data)
                op.properties["sharding"] = TensorShardingAttr.of(new)
        return bool(found)

    @property
    def text(self) -> str:
        if self.dims is None:
            return f"remove {self.constraint.text}"
        return f"change {self.constraint.text} to {spec(self.dims)}"


@dataclass(frozen=True)
class Results:
    """The results of the operations of a source line that have a name and a type."""

    where: Location
    operation: str
    index: int
    type_: Attribute

    @classmethod
    def of(cls, value: SSAValue) -> "Results | None":
        """Return the line of the operation that computes `value`; None without one, or where it may have no name.

        A loop returns values that JAX saves for the gradient, which no line of Python names; nor does one name a
        gradient.
        """
        op = value.owner
        where = location_of(op) if isinstance(op, Operation) else None
        if not isinstance(op, Operation) or isinstance(op, WhileOp) or where is None or computes_gradient(op):
            return None
        return cls(where, op.name, op.results.index(value), value.type)

    def values(self, module: ModuleOp) -> list[SSAValue]:
        """Return the values in `module`."""
        return [
            op.results[self.index]
            for op in operations(module)
            if op.name == self.operation
            and not computes_gradient(op)
            and self.index < len(op.results)
            and op.results[self.index].type == self.type_
            and location_of(op) == self.where
        ]

    def gradients(self, of_line: Iterable[Operation]) -> list[SSAValue]:
        """Return the gradients with respect to the values, by the operations of the backward pass of the line.

        They are the operands that other lines compute. JAX constrains the gradient of a constrained value alike.
        """
        operands = dict.fromkeys(
            value for op in of_line for value in op.operands if value.type == self.type_ and self._is_gradient(value)
        )
        return [*operands]

    def _is_gradient(self, value: SSAValue) -> bool:
        """Return whether a value is computed in the backward pass, by another line, from more than a saved value."""
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return isinstance(loop, WhileOp) and is_in_backward_pass(loop) and value not in carried_unchanged(loop)
        op = value.owner
        while isinstance(op, ReshapeOp) and isinstance(op.operand.owner, Operation):
            op = op.operand.owner
        is_saved = isinstance(op, DynamicSliceOp | OptimizationBarrierOp)
        return isinstance(op, Operation) and not is_saved and computes_gradient(op) and location_of(op) != self.where


def computes_gradient(op: Operation) -> bool:
    """Return whether `op` is in the backward pass and computes nothing of the forward pass again."""
    return is_in_backward_pass(op) and _RECOMPUTED not in name_path(op)


_RECOMPUTED = "rematted_computation"
"""The name scope of operations of the forward pass that `jax.checkpoint` computes again."""


@dataclass(frozen=True)
class AddConstraint(Edit):
    """Constrain the results of the operations of a line, and their gradients.

    Attributes:
        results: The results.
        dims: The axes of each dimension.
        lacks_gradient: True if the program computes gradients of the line, but none of the results is found.
    """

    adds_constraint: ClassVar[bool] = True

    results: Results
    dims: Dims
    lacks_gradient: bool = False

    def apply(self, module: ModuleOp) -> bool:
        of_line = [op for op in operations(module) if location_of(op) == self.results.where and computes_gradient(op)]
        gradients, values = self.results.gradients(of_line), self.results.values(module)
        for value in (*values, *gradients):
            constraint = ShardingConstraintOp(value, sharding_with(module, value.type, self.dims, None))
            owner = value.owner
            at = InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)
            insert_for_other_uses(value, constraint, at)
        return bool(values)

    @property
    def text(self) -> str:
        tried = " (tried for the values alone, not for their gradients)" if self.lacks_gradient else ""
        return (
            f"constrain the {self.results.type_} computed at {self.results.where.short} with "
            f"jax.lax.with_sharding_constraint(..., {spec(self.dims)}){tried}"
        )


@dataclass(frozen=True)
class GatherFirst(Edit):
    """Move sharding constraints before the widening casts of a line, or add them there.

    Attributes:
        where: The line of Python; casts in other programs are found by their type.
        type_: The type of the result of a cast.
        dims: The sharding that a tensor is gathered to.
    """

    where: Location | None
    type_: Attribute
    dims: Dims

    def apply(self, module: ModuleOp) -> bool:
        casts = [
            op
            for op in operations_of(module, ConvertOp)
            if rank(op.result.type) == len(self.dims) and _is_alike(op, _wider(op).type, self.where, self.type_)
        ]
        for op in casts:
            narrow = op.result if _wider(op) is op.operands[0] else op.operands[0]
            new = ShardingConstraintOp(narrow, sharding_with(module, narrow.type, self.dims, None))
            new.location = op.location
            if narrow is op.result:
                # The cast of the gradient: a constraint on a value is one on its gradient.
                insert_for_other_uses(narrow, new, InsertPoint.after(op))
                continue
            for user in [use.operation for use in op.result.uses]:
                if isinstance(user, ShardingConstraintOp) and user.sharding.data.dim_axes == self.dims:
                    replace(user, [user.input])
            insert(new, InsertPoint.before(op))
            op.operands[0] = new.result
        return bool(casts)

    @property
    def text(self) -> str:
        return (
            f"gather before the cast {_place(self.where, self.type_)}: constrain its operand with "
            f"jax.lax.with_sharding_constraint(..., {spec(self.dims)})"
        )


MOVES: Mapping[type[Operation], str] = {
    AllGatherOp: "all_gather",
    AllToAllOp: "all_to_all",
    CollectivePermuteOp: "ppermute",
}
"""The collectives that move elements, with the functions of `jax.lax` that write them in a `shard_map`."""


@dataclass(frozen=True)
class CastFirst(Edit):
    """Cast before the collectives of a line in a `shard_map` that move elements, and after the sums of their gradients.

    Attributes:
        where: The line of the casts; those in other programs are found by their type.
        type_: The wider type of a cast.
        function: The name of the collectives in `jax.lax`.
    """

    where: Location | None
    type_: Attribute
    function: str

    def apply(self, module: ModuleOp) -> bool:
        is_changed = False
        for op in operations_of(module, ConvertOp):
            if not _is_alike(op, _wider(op).type, self.where, self.type_):
                continue
            move, users = op.operands[0].owner, [use.operation for use in op.result.uses]
            if isinstance(move, Operation) and type(move) in MOVES and op.operands[0].has_one_use():
                cast = ConvertOp.create(operands=move.operands, result_types=[_like(move.operands[0], op.result)])
                cast.location = op.location
                insert(cast, InsertPoint.before(move))
                move.operands[0] = cast.result
                change_type(move.results[0], op.result.type)
                replace(op, [move.results[0]])
                is_changed = True
            elif len(users) == 1 and isinstance(users[0], ReduceScatterOp):
                _sum_before(op, users[0])
        return is_changed

    @property
    def text(self) -> str:
        return f"cast before jax.lax.{self.function} {_place(self.where, self.type_)}"


def _sum_before(cast: ConvertOp, sum_: ReduceScatterOp) -> None:
    """Move a cast behind the sum over devices of its result."""
    narrow, wide = cast.operands[0], sum_.results[0].type
    sum_.operands[0] = narrow
    for value in [value for op in sum_.walk() for value in (*op.results, *_arguments(op))]:
        change_type(value, _like(value, narrow))
    after = ConvertOp.create(operands=sum_.results, result_types=[wide], location=cast.location)
    insert_for_other_uses(sum_.results[0], after, InsertPoint.after(sum_))
    erase(cast)


def _arguments(op: Operation) -> Iterable[SSAValue]:
    return (argument for region in op.regions for block in region.blocks for argument in block.args)


def _like(value: SSAValue, other: SSAValue) -> Attribute:
    """Return the type of `value` with the elements of `other`."""
    return tensor_of(element_type(other), shape_of(value))


@dataclass(frozen=True)
class LeaveOutSum(Edit):
    """Leave out the sums over devices of a line in a `shard_map`.

    Attributes:
        where: The line of Python; None without one.
        number: The number of the sum among those of the program, by which it is found without a line.
    """

    where: Location | None
    number: int

    @classmethod
    def of(cls, op: AllReduceOp, module: ModuleOp) -> "LeaveOutSum":
        """Return the edit that leaves out a sum of a program."""
        return cls(python_line(location_of(op)), operations_of(module, AllReduceOp).index(op))

    def apply(self, module: ModuleOp) -> bool:
        every = operations_of(module, AllReduceOp)
        found = [op for op in every if location_of(op) == self.where] if self.where else every[self.number :][:1]
        for op in found:
            replace(op, [*op.operands])
        return bool(found)

    @property
    def text(self) -> str:
        product = "in place of a jax.lax.psum, multiply by the number of devices"
        return f"leave out the sum over devices{_at(self.where)} ({product})"


@dataclass(frozen=True)
class ReturnParts(Edit):
    """Return the parts of gathered results from the `shard_map`s of a line, and name the axes in `out_specs`.

    Attributes:
        where: The line; None for all that have none.
        axes: The axes of the gathers.
    """

    where: Location | None
    axes: tuple[str, ...]

    def apply(self, module: ModuleOp) -> bool:
        is_changed = False
        for op in operations_of(module, ManualComputationOp):
            for each in gathered_results(op) if location_of(op) == self.where else ():
                shardings = [*op.out_shardings.data]
                dims = [*shardings[each.index].dims]
                dims[each.dimension] = DimSharding((*dims[each.dimension].axes, *map(AxisRef, self.axes)))
                shardings[each.index] = TensorSharding(shardings[each.index].mesh, tuple(dims))
                op.properties["out_shardings"] = TensorShardingPerValueAttr.of(tuple(shardings))
                each.return_parts()
                is_changed = True
        return is_changed

    @property
    def text(self) -> str:
        axes = joined([AxisRef(axis) for axis in self.axes])
        return f"leave out jax.lax.all_gather in the jax.shard_map{_at(self.where)}, and name {axes} in out_specs"


@dataclass(frozen=True)
class FreeManualAxes(Edit):
    """Leave axes of the `shard_map`s of a line to propagation: its body does not use them.

    Attributes:
        where: The line; None for all that have none.
        axes: The axes that the specs do not name.
        kept: The other manual axes.
    """

    where: Location | None
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
        free = joined([AxisRef(axis) for axis in self.axes])
        if not self.kept:
            return f"name {free} in the specs of the jax.shard_map{_at(self.where)}"
        axes = ", ".join(f'"{axis}"' for axis in self.kept)
        return (
            f"give the jax.shard_map{_at(self.where)} axis_names={{{axes}}}, so that "
            f"{free} shards the tensors inside too, or name it in its specs"
        )


def _is_alike(op: Operation, type_: Attribute, where: Location | None, wanted: Attribute) -> bool:
    """Return whether an operation is at a Python line, or else whether its type is the wanted one.

    A line of another program is one operation: the layers of a model have a line each.
    """
    line = python_line(where)
    return location_of(op) == line if line else type_ == wanted and python_line(location_of(op)) is None


def _wider(cast: ConvertOp) -> SSAValue:
    """Return the operand or the result of a cast, the one with more bytes."""
    return max(cast.operands[0], cast.result, key=lambda value: element_bytes(value.type))


def _place(where: Location | None, type_: Attribute) -> str:
    return f"at {where.short}" if where else f"on {type_}"


def _at(where: Location | None) -> str:
    return f" at {where.short}" if where else ""


def _opened(sharding: TensorSharding) -> TensorSharding:
    """Return a sharding of a manual computation in which the axes that it does not name are free."""
    return TensorSharding(sharding.mesh, tuple(DimSharding(dim.axes, is_closed=False) for dim in sharding.dims))
