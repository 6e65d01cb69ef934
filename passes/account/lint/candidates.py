"""Candidate fixes: other layouts of the arguments and the constraints that a costly reshard stems from."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import combinations, islice, zip_longest

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue, Use

from sdy.axes import Axes, AxisRef, total_size
from sdy.diagnostics import Location, location_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, rank, shape, shape_of
from sdy.passes.account.causes import Cause
from sdy.passes.account.lint.body_edits import (
    AddConstraint,
    ChangeConstraint,
    Constraint,
    Results,
    computes_gradient,
)
from sdy.passes.account.lint.edits import Cure, Dims, ShardArgument, dims_of, next_values, value_dims
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.auto.state import find_state
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.properties import is_elementwise
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.control_flow import ReturnOp, WhileOp

_MOST_ALONE = 3
"""Number of layers with one layout in which the argument of a single one is sharded differently."""


class Candidates:
    """Candidate fixes of a program, the most likely first."""

    def __init__(self, program: LintedProgram) -> None:
        self._program = program

    def of_cause(self, cause: Cause) -> list[Cure]:
        """Return the fixes for a reshard: of the tensor itself, and of what decided the shardings of the operation."""
        tensor, op = cause.tensor, cause.operation
        found = [self.of_constraint(op)] if isinstance(op, ReshardOp) else []
        for value in self._program.use_def.trace(tensor) if tensor is not None else ():
            wanted = dims_of(cause.after, value) if tensor is not None and value.type == tensor.type else None
            found.append(self.of_value(value, wanted))
        origins = dict.fromkeys(each for value in (*op.operands, *op.results) for each in self._origins(value))
        found += map(self.of_value, origins)
        if tensor is not None and isinstance(tensor.owner, Operation):
            found.append(self.of_result(tensor))
        rounds = zip_longest(*found)
        return [*dict.fromkeys(cure for each in rounds for cure in each if cure is not None)]

    def of_origins(self, value: SSAValue) -> list[Cure]:
        """Return the fixes at the arguments and constraints that the axes of a value stem from."""
        return [cure for origin in dict.fromkeys(self._origins(value)) for cure in self.of_value(origin)]

    def constraints_behind(self, value: SSAValue, axes: Axes) -> list[ReshardOp]:
        """Return the constraints that `axes` of a value stem from, however far they are."""
        chains = [chain for chain in self._program.chains(value) if any(chain.axis.overlaps(axis) for axis in axes)]
        return [*dict.fromkeys(op for chain in chains for op in self._constraints_at.get(chain.origin.where, ()))]

    def of_value(self, value: SSAValue, wanted: Dims | None = None) -> list[Cure]:
        """Return the fixes at an argument of the main function or at a constraint; none for another value."""
        if isinstance(value, BlockArgument) and value.owner is self._program.main.body.block:
            return self.of_argument(value, wanted)
        if isinstance(value, OpResult) and isinstance(value.op, ReshardOp):
            return self.of_constraint(value.op, wanted)
        return []

    def of_argument(self, argument: BlockArgument, wanted: Dims | None = None) -> list[Cure]:
        """Return other layouts of an argument, of the arguments like it, and of the constraints with its layout."""
        before = value_dims(argument)
        dims = [wanted] if wanted is not None else []
        dims += [*self.siblings_layouts(argument), None, *self.moved(argument, before)]
        if not any(before):
            dims += self.extended(argument, before)
        constraints = self._constraints_like(argument, before)
        alike, layers = self._all_with_state(self.alike(argument)), self.in_layers(argument)
        of_layout = self._of_layout(argument) if any(before) else alike
        one = layers if self._is_of_many(argument) else self.with_state(argument)
        groups: list[tuple[list[BlockArgument], list[Constraint]]]
        groups = [
            (alike, constraints),
            (of_layout, []),
            (one, constraints),
            (alike, []),
            (layers, []),
            (one, []),
        ]
        cures = (
            Cure((*(self.shard(each, new) for each in arguments), *(ChangeConstraint(each, new) for each in changed)))
            for arguments, changed in groups
            for new in dict.fromkeys(dims)
            if new != before
        )
        return [*dict.fromkeys(cures)]

    def shard(self, argument: BlockArgument, dims: Dims | None) -> ShardArgument:
        """Return the edit that gives an argument a layout."""
        return ShardArgument(argument.index, self._program.names[argument.index], dims)

    def of_constraint(self, op: ReshardOp, wanted: Dims | None = None) -> list[Cure]:
        """Return other layouts of the constraints of a line, and their removal; none for one that is passed on."""
        if op in self._program.passed_on:
            return []
        before = dims_of(op.sharding.data, op.result)
        constraint = Constraint.of(op, before)
        dims = [wanted] if wanted is not None else []
        given = _given(op.input, before)
        dims += [given, *_of_operands(op.input, before), *_parts(given), *_taken(op.result, before), None]
        dims += [*self.moved(op.result, before), *self._elsewhere(op.result, before, given)]
        return [Cure((ChangeConstraint(constraint, new),)) for new in dict.fromkeys(dims) if new != before]

    def of_result(self, value: SSAValue, wanted: Dims | None = None) -> list[Cure]:
        """Return constraints on a value that an operation computes."""
        results = Results.of(value)
        if results is None:
            return []
        before = value_dims(value)
        given = [wanted] if wanted is not None else []
        layouts = dict.fromkeys([*given, *self._batch_layouts(value), *self.moved(value, before)])
        of_line = self._backward.get(results.where, [])
        lacks_gradient = bool(of_line) and not results.gradients(of_line)
        return [Cure((AddConstraint(results, dims, lacks_gradient),)) for dims in layouts if dims != before]

    @cached_property
    def _backward(self) -> Mapping[Location, Sequence[Operation]]:
        """The operations of the backward pass of each line."""
        found: dict[Location, list[Operation]] = {}
        for op in self._program.operations:
            if computes_gradient(op) and (where := location_of(op)):
                found.setdefault(where, []).append(op)
        return found

    def moved(self, value: SSAValue, before: Dims) -> Iterator[Dims]:
        """Yield layouts that exchange the axes of two dimensions of a value, or move those of one to another one."""
        for first, second in combinations([index for index, axes in enumerate(before) if axes], 2):
            exchanged = [*before]
            exchanged[first], exchanged[second] = before[second], before[first]
            if self._divides(value, exchanged):
                yield tuple(exchanged)
        for source, axes in enumerate(before):
            for target in range(len(before)) if axes else ():
                moved = [[*each] for each in before]
                moved[source] = []
                moved[target] = [*moved[target], *axes]
                if target != source and self._divides(value, moved):
                    yield tuple(map(tuple, moved))

    def _elsewhere(self, value: SSAValue, before: Dims, given: Dims) -> Iterator[Dims]:
        """Yield layouts that split another, whole dimension over the axes of its operand that a constraint drops."""
        for axes in given:
            if axes:
                added = self.with_axes(value, before, axes)
                yield from (dims for dims in added if axes in dims and dims.index(axes) != given.index(axes))

    def extended(self, value: SSAValue, before: Dims) -> Iterator[Dims]:
        """Yield layouts that split a dimension of a value over one more axis."""
        for name, size in self._program.mesh.axes:
            if size > 1:
                yield from self.with_axes(value, before, [AxisRef(name)])

    def with_axes(self, value: SSAValue, before: Dims, axes: Sequence[AxisRef]) -> Iterator[Dims]:
        """Yield layouts that split a dimension of a value over more axes; none if one of them splits it already."""
        used = {axis.name for own in before for axis in own}
        if not used.isdisjoint(axis.name for axis in axes):
            return
        for target in range(len(before)):
            added = [[*each] for each in before]
            added[target] += axes
            if self._divides(value, added):
                yield tuple(map(tuple, added))

    def together(self, argument: BlockArgument, index: int, axis: AxisRef) -> Cure | None:
        """Return the fix that splits a dimension over one more axis, in all arguments of a tree that have its size.

        They are the edges of a graph, or the stacked parameters of an ensemble, with their optimizer state.
        """
        size = shape_of(argument)[index]
        of_tree = [each for each in self._program.main.args if each is argument or tree(each) == tree(argument) != ""]
        edits: dict[ShardArgument, None] = {}
        for each in of_tree:
            if not is_static_tensor(each.type) or shape_of(each)[index : index + 1] != (size,):
                continue
            added = [[*own] for own in self._dims[each]]
            added[index].append(axis)
            used = {other.name for own in self._dims[each] for other in own}
            if axis.name not in used and self._divides(each, added):
                edits.update((self.shard(state, tuple(map(tuple, added))), None) for state in self.with_state(each))
        return Cure(tuple(edits)) if edits else None

    def _divides(self, value: SSAValue, dims: Iterable[Sequence[AxisRef]]) -> bool:
        sizes = zip(shape_of(value), dims, strict=True)
        return all(size % total_size(axes, self._program.mesh) == 0 for size, axes in sizes)

    def _batch_layouts(self, value: SSAValue) -> Iterator[Dims]:
        """Yield layouts that split the first dimension of a value as arguments have their first dimension split."""
        for argument in self._program.main.args:
            sharding = get_sharding(argument)
            if sharding and sharding.dims and sharding.dims[0].axes:
                dims: Dims = (sharding.dims[0].axes, *((),) * (rank(value.type) - 1))
                if rank(value.type) and self._divides(value, dims):
                    yield dims

    def siblings_layouts(self, argument: BlockArgument) -> list[Dims]:
        """Return the layouts of arguments with the same path in other layers."""
        return [*dict.fromkeys(self._dims[each] for each in self.siblings(argument))]

    def siblings(self, argument: BlockArgument) -> list[BlockArgument]:
        """Return the arguments with the same path in other layers, and this one."""
        return self._by_pattern.get(self.pattern(argument), [argument])

    def _is_of_many(self, argument: BlockArgument) -> bool:
        """Return whether many layers have an argument with its layout: a fix of one would make it differ from them."""
        alike = [each for each in self.siblings(argument) if self._dims[each] == self._dims[argument]]
        return len(alike) > _MOST_ALONE

    @property
    def families(self) -> Iterable[Sequence[BlockArgument]]:
        """The arguments of each path in all layers."""
        return self._by_pattern.values()

    def pattern(self, argument: BlockArgument) -> tuple[object, Attribute]:
        """Return the path of an argument without numbers, or else the operations that use it, and its type."""
        return self._patterns[argument], argument.type

    @cached_property
    def _patterns(self) -> Mapping[BlockArgument, object]:
        return {
            each: re.sub(r"\d+", "*", name) if (name := given_name(each)) else self._users[each]
            for each in self._program.main.args
        }

    @cached_property
    def _state(self) -> Mapping[int, int]:
        return find_state(self._program.main)

    @cached_property
    def _by_pattern(self) -> dict[tuple[object, Attribute], list[BlockArgument]]:
        found: dict[tuple[object, Attribute], list[BlockArgument]] = {}
        for argument in self._program.main.args:
            found.setdefault(self.pattern(argument), []).append(argument)
        return found

    def alike(self, argument: BlockArgument) -> list[BlockArgument]:
        """Return the arguments of the type and layout of an argument that are used like it, and the argument.

        They are arguments whose paths begin alike, or arguments of state, such as the keys and the values of a cache,
        and operations of equal names use them. A table of embeddings is not like the weight of a product.
        """
        root, pattern = tree(argument), self.pattern(argument)
        is_state, users = argument.index in self._state, self._users[argument]
        return [
            each
            for each in self._by_layout[argument.type, self._dims[argument]]
            if self.pattern(each) == pattern
            or (self._users[each] == users and (tree(each) == root or (is_state and each.index in self._state)))
        ]

    def _of_layout(self, argument: BlockArgument) -> list[BlockArgument]:
        """Return the arguments of the tree of an argument that have its layout, with their state."""
        before = self._dims[argument]
        return self._all_with_state(
            [each for each, dims in self._dims.items() if dims == before and tree(each) == tree(argument)]
        )

    def in_layers(self, argument: BlockArgument) -> list[BlockArgument]:
        """Return the arguments with the path and the layout of an argument in any layer, with their state."""
        return self._all_with_state(
            [each for each in self.siblings(argument) if self._dims[each] == self._dims[argument]]
        )

    def with_state(self, parameter: BlockArgument) -> list[BlockArgument]:
        """Return an argument and its optimizer state of the same layout."""
        states = self._program.optimizer_states.get(parameter, ())
        return [parameter, *(each for each in states if self._dims[each] == self._dims[parameter])]

    def _all_with_state(self, parameters: Iterable[BlockArgument]) -> list[BlockArgument]:
        return [*dict.fromkeys(each for parameter in parameters for each in self.with_state(parameter))]

    @cached_property
    def _dims(self) -> Mapping[BlockArgument, Dims]:
        """The axes of each dimension of the arguments."""
        return {each: value_dims(each) for each in self._program.main.args}

    @cached_property
    def _by_layout(self) -> Mapping[tuple[Attribute, Dims], Sequence[BlockArgument]]:
        """The arguments of each type and layout."""
        found: dict[tuple[Attribute, Dims], list[BlockArgument]] = {}
        for argument, dims in self._dims.items():
            found.setdefault((argument.type, dims), []).append(argument)
        return found

    @cached_property
    def _users(self) -> Mapping[BlockArgument, Set[str]]:
        """The names of the operations that use each argument."""
        return {each: frozenset(use.operation.name for use in each.uses) for each in self._program.main.args}

    def _constraints_like(self, argument: BlockArgument, dims: Dims) -> list[Constraint]:
        """Return the constraints of values of the type of an argument to its layout."""
        return self._constraints.get((argument.type, dims), [])

    def with_batch_axis(self, axes: Axes, axis: AxisRef) -> list[ChangeConstraint]:
        """Return the edits that add an axis to the constraints whose first dimension `axes` split."""
        return [
            ChangeConstraint(constraint, ((*axes, axis), *dims[1:]))
            for (_, dims), constraints in self._constraints.items()
            if dims and dims[0] == axes and not any(each.overlaps(axis) for dim in dims for each in dim)
            for constraint in constraints
        ]

    @cached_property
    def _constraints(self) -> Mapping[tuple[Attribute, Dims], list[Constraint]]:
        """The constraints of each type and layout."""
        found: dict[tuple[Attribute, Dims], dict[Constraint, None]] = {}
        for op in self._program.operations:
            if isinstance(op, ReshardOp):
                dims = dims_of(op.sharding.data, op.result)
                found.setdefault((op.result.type, dims), {})[Constraint.of(op, dims)] = None
        return {key: [*constraints] for key, constraints in found.items()}

    def _origins(self, value: SSAValue) -> Iterator[SSAValue]:
        """Yield the arguments and the constraints that axes of a value stem from."""
        for chain in self._program.chains(value):
            origin = chain.origin
            yield from (argument for argument, texts in self._given.items() if origin.text.startswith(texts))
            for op in self._constraints_at.get(origin.where, ()) if len(chain.hops) <= 1 else ():
                yield op.result

    @cached_property
    def _given(self) -> Mapping[BlockArgument, tuple[str, ...]]:
        """The arguments with the beginnings of origins that say that their axes, or their next value's, are given."""
        following = next_values(self._program.main)
        named = zip(self._program.main.args, self._program.names, strict=True)
        return {
            argument: (f"given to {name.partition(' (')[0]} ", f"given to result {following.get(argument.index)} ")
            for argument, name in named
        }

    @cached_property
    def _constraints_at(self) -> dict[Location | None, list[ReshardOp]]:
        found: dict[Location | None, list[ReshardOp]] = {}
        for op in self._program.operations:
            if isinstance(op, ReshardOp) and (where := location_of(op)):
                found.setdefault(where, []).append(op)
        return found


def tree(argument: BlockArgument) -> str:
    """Return the name of the parameter of the function that an argument is a leaf of, such as `params`."""
    return re.split(r"[\[.]", given_name(argument), maxsplit=1)[0]


def _given(value: SSAValue, before: Dims) -> Dims:
    """Return the layout of a constrained value, or that of a value it is computed from elementwise, if not `before`."""
    at: SSAValue | None = value
    while at is not None and value_dims(at) == before:
        operands = at.op.operands if isinstance(at, OpResult) and is_elementwise(at.op) else ()
        same = [operand for operand in operands if operand.type == value.type]
        at = next((operand for operand in same if value_dims(operand) != before), same[0] if same else None)
    return before if at is None else value_dims(at)


def _of_operands(value: SSAValue, before: Dims) -> Iterator[Dims]:
    """Yield a layout with the axes that operands give the dimensions of a value that `before` does not split.

    They are those of the operation that computes the value, or what it is computed from elementwise.
    """
    op = value.owner
    while isinstance(op, Operation) and is_elementwise(op):
        op = next((each.owner for each in op.operands if each.type == value.type), None)
    rule = sharding_rule(op) if isinstance(op, Operation) else None
    factors = rule.results[0] if rule and len(rule.results) == 1 and len(rule.results[0]) == len(before) else ()
    operands = zip(op.operands, rule.operands, strict=True) if isinstance(op, Operation) and rule else ()
    given = {own: axes for each, mapping in operands for own, axes in zip(mapping, value_dims(each), strict=True)}
    dims = [*before]
    for index, own in enumerate(factors):
        axes = given.get(own, ())
        used = [axis for each in dims for axis in each]
        if not dims[index] and not any(axis.overlaps(each) for axis in axes for each in used):
            dims[index] = axes
    if tuple(dims) != before:
        yield tuple(dims)


def _taken(value: SSAValue, before: Dims) -> Iterator[Dims]:
    """Yield the other layout of the first elementwise operation that uses a value, if it has one."""
    ops = (use.operation for use in value.uses)
    results = (result for op in ops if is_elementwise(op) for result in op.results)
    layouts = (value_dims(result) for result in results if result.type == value.type)
    yield from islice((dims for dims in layouts if dims != before), 1)


def last_of_line(value: SSAValue) -> SSAValue:
    """Return the last value of the shape and layout of `value` that a line of a person's file computes from it.

    A library computes others before it, such as the bits of random numbers in a loop, that the line does not name.
    """
    where, at, seen = location_of(value), value, set[SSAValue]()
    while where is not None and at not in seen:
        seen.add(at)
        after = [_result(use) for use in at.uses]
        same = [each for each in after if each and location_of(each) == where and shape(each.type) == shape(at.type)]
        if not same or len(same) < len(after) or value_dims(same[0]) != value_dims(at):
            break
        at = same[0]
    return at


def _result(use: Use) -> SSAValue | None:
    """Return the result of an elementwise operation that uses a value, or of the loop that returns it."""
    op = use.operation
    if is_elementwise(op):
        return op.results[0]
    loop = op.parent_op()
    return loop.results[use.index] if isinstance(op, ReturnOp) and isinstance(loop, WhileOp) else None


def _parts(dims: Dims) -> Iterator[Dims]:
    """Yield `dims` with some of its dimensions unsplit."""
    split = [index for index, axes in enumerate(dims) if axes]
    for index in split:
        if len(split) > 1:
            yield tuple(axes if other == index else () for other, axes in enumerate(dims))
