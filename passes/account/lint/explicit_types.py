"""Explicit axis types of JAX: the type of each result has a sharding, and the program constrains the result to it.

A person writes few of these constraints, with `jax.sharding.reshard` or `out_sharding`. The others only pass on the
sharding that the type of a result takes from those of the operands, and follow where one before them is changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Set

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.axes import Axes, AxisRef
from sdy.diagnostics import Location, location_of
from sdy.dialect.ops import ReshardOp, ShardingConstraintOp
from sdy.dialect.shardings import func_arg_sharding
from sdy.ir.shapes import is_static_tensor, rank
from sdy.ir.walking import operations, operations_of
from sdy.passes.account.lint.edits import Dims, dims_of
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass, name_path
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp

AnyConstraint = ShardingConstraintOp | ReshardOp

_RESHARD = "reshard"
_WRITTEN = {"": "", _RESHARD: "jax.sharding.reshard", "sharding_constraint": "jax.lax.with_sharding_constraint"}
"""The primitives whose constraint a person writes, with the function of JAX; none if names are unknown."""


def primitive(op: Operation) -> str:
    """Return the primitive of JAX that an operation is of; empty if it is unknown."""
    return name_path(op).rpartition("/")[2]


def written_as(primitive: str) -> str:
    """Return the function or the argument of JAX that a person writes for the constraint of a primitive."""
    return _WRITTEN.get(primitive, "the out_sharding") or _WRITTEN["sharding_constraint"]


def passed_on(module: ModuleOp) -> Set[Operation]:
    """Return the constraints that only pass on the shardings of operands."""
    return _Types(module, {}).passed_on


def retyped(module: ModuleOp, changed: Mapping[Operation, Dims | None]) -> Mapping[Operation, Dims]:
    """Return the shardings of all constraints that are others if some constraints are changed or removed (None)."""
    return _Types(module, changed).retyped


class _Types:
    """The shardings in the types of values, before and after a change of some constraints.

    Values of unknown types, such as results without a constraint of unknown operands, have none.
    """

    def __init__(self, module: ModuleOp, changed: Mapping[Operation, Dims | None]) -> None:
        self.passed_on: set[Operation] = set()
        self.retyped: dict[Operation, Dims] = {}
        self._changed = changed
        self._before: dict[SSAValue, Dims] = {}
        self._after: dict[SSAValue, Dims] = {}
        self._transposed: dict[tuple[Location | None, object, Dims], Dims] = {}
        """The new sharding of the gradient of what a line computes or reshards, by its old one."""
        if not all(primitive(op) in _WRITTEN for op in operations_of(module, ShardingConstraintOp, ReshardOp)):
            self._infer(module)

    def _infer(self, module: ModuleOp) -> None:
        main = main_function(module)
        for index, argument in enumerate(main.args):
            sharding = func_arg_sharding(main, index)
            if sharding is not None:
                self._before[argument] = self._after[argument] = dims_of(sharding, argument)
        for op in operations(module):
            if isinstance(op, AnyConstraint):
                self._constrain(op)
            else:
                for types in (self._before, self._after):
                    types.update([*_results(op, types)])

    def _constrain(self, op: AnyConstraint) -> None:
        before = dims_of(op.sharding.data, op.result)
        given, new = self._before.get(op.input), self._after.get(op.input)
        after = before
        if op in self._changed:
            after = self._changed[op] or new or before
        elif primitive(op) not in _WRITTEN and (given == before or is_in_backward_pass(op)):
            self.passed_on.add(op)
            after = new or before
        key = location_of(op), op.result.type
        if is_in_backward_pass(op):
            after = self._transposed.get((*key, before), before) if after == before else after
        else:
            for old, changed in ((given, new), (before, after)):
                if old is not None and changed is not None and old != changed:
                    self._transposed[*key, old] = changed
        if after != before:
            self.retyped[op] = after
        self._before[op.result], self._after[op.result] = before, after


def _results(op: Operation, types: Mapping[SSAValue, Dims]) -> Iterator[tuple[SSAValue, Dims]]:
    """Yield the shardings of the results of an operation, and of the values that a loop carries."""
    if isinstance(op, WhileOp | OptimizationBarrierOp):
        for index, operand in enumerate(op.operands):
            if operand in types:
                yield op.results[index], types[operand]
                for region in op.regions:
                    yield region.block.args[index], types[operand]
        return
    ranked = [operand for operand in op.operands if rank(operand.type)]
    if not ranked and not op.regions:
        yield from ((result, ((),) * rank(result.type)) for result in op.results)
        return
    rule = sharding_rule(op)
    if rule is None or not all(operand in types for operand in ranked):
        return
    axes: dict[int, Axes] = {}
    for operand, mapping in zip(op.operands, rule.operands, strict=True):
        for factors, own in zip(mapping, types.get(operand, ()), strict=False):
            if factors and own:
                axes.setdefault(factors[0], own)
    for result, mapping in zip(op.results, rule.results, strict=True):
        if is_static_tensor(result.type):
            yield result, _without_repeats(axes.get(factors[0], ()) if factors else () for factors in mapping)


def _without_repeats(dims: Iterable[Axes]) -> Dims:
    """Return the axes of each dimension that no dimension before it has."""
    used: list[AxisRef] = []
    found: list[Axes] = []
    for axes in dims:
        found.append(tuple(axis for axis in axes if not any(axis.overlaps(other) for other in used)))
        used += axes
    return tuple(found)
